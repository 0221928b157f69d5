"""A small host: makes the named attempts and prints what each reached. `other_user_host.py FOLDER LAYERS SENTENCES`.

The last two are lists in JSON; without layers nothing confines.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from sandbox_attempts import ATTEMPTS
from sandbox_world import all_attempts

if __name__ == "__main__":
    layers, sentences = json.loads(sys.argv[2]), json.loads(sys.argv[3])
    wanted = [each for each in ATTEMPTS if each.sentence in sentences]
    print(json.dumps(asyncio.run(all_attempts(Path(sys.argv[1]), wanted, layers or None))))
