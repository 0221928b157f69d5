"""Secrets that can be told by their shape or by their name, in text that leaves: the logger, the terminal, an export.

Only shapes that ordinary text does not have: a vendor's own mark, and enough of what only a machine writes behind it.
"""

from __future__ import annotations

import re

from deepstrike.secrets.names import HIDDEN, masked_by_name

_SHAPES = (
    r"sk-(?:ant|or|proj|svcacct|admin|lf|cp)-[A-Za-z0-9_-]{16,}",  # Anthropic, OpenRouter, OpenAI, Langfuse, MiniMax
    r"sk-[A-Za-z0-9]{20,}",  # OpenAI, DeepSeek, Moonshot, DashScope
    r"sk-test-[A-Za-z0-9_-]{16,}",
    r"AIza[A-Za-z0-9_-]{35}",  # Google
    r"ya29\.[A-Za-z0-9_-]{20,}",
    r"GOCSPX-[A-Za-z0-9_-]{20,}",
    r"gsk_[A-Za-z0-9]{20,}",  # Groq
    r"xai-[A-Za-z0-9]{20,}",
    r"pplx-[A-Za-z0-9]{20,}",  # Perplexity
    r"hf_[A-Za-z0-9]{20,}",  # Hugging Face
    r"r8_[A-Za-z0-9]{20,}",  # Replicate
    r"nvapi-[A-Za-z0-9_-]{20,}",
    r"fw_[A-Za-z0-9]{20,}",  # Fireworks
    r"csk-[A-Za-z0-9]{20,}",  # Cerebras
    r"tgp_v1_[A-Za-z0-9_-]{20,}",  # Together
    r"voyage-[A-Za-z0-9_-]{32,}|pa-[A-Za-z0-9_-]{40,}",  # Voyage
    r"tvly-[A-Za-z0-9-]{20,}",  # Tavily
    r"lsv2_(?:pt|sk)_[A-Za-z0-9_]{20,}",  # LangSmith
    r"pcsk_[A-Za-z0-9_]{20,}",  # Pinecone
    r"gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}",
    r"glpat-[A-Za-z0-9_-]{20,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",  # AWS
    r"xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{20,}",  # Slack
    r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9]{20,}",  # Stripe
    r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",  # SendGrid
    r"npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{40,}",
    r"dop_v1_[a-f0-9]{40,}",  # DigitalOcean
    r"dapi[a-f0-9]{32}",  # Databricks
    r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",  # Shopify
    r"ntn_[A-Za-z0-9]{30,}|secret_[A-Za-z0-9]{40,}",  # Notion
    r"lin_api_[A-Za-z0-9]{30,}",  # Linear
    r"eyJ[A-Za-z0-9_-]{16,}\.eyJ[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",  # a signed JSON web token
)
# In JSON the letter before may belong to an escape.
_BEGIN = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[bfnrt])|(?<=\\u[0-9a-fA-F]{4}))"
_shapes = re.compile(f"{_BEGIN}(?:{'|'.join(_SHAPES)})")
_BODY = r"(?:[A-Za-z0-9+/=:,\s-]|\\+[nr])"
_END = r"-----END [A-Z ]*PRIVATE KEY-----"
_key_block = re.compile(rf"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:{_BODY}*?{_END}|{_BODY}*)")


def masked(text: str) -> str:
    """`text` with `***` in the place of everything that has the shape or the name of a secret."""
    return masked_by_name(_key_block.sub(HIDDEN, _shapes.sub(HIDDEN, text)))


def blanked(text: str) -> str:
    """`text` with as many stars in the place of what has the shape of a secret."""
    return _key_block.sub(_stars, _shapes.sub(_stars, text))


def _stars(found: re.Match[str]) -> str:
    return "*" * len(found[0])
