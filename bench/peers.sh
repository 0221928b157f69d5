#!/usr/bin/env bash
# Runs the side-by-side benchmark that lies beside this checkout with our adapter: bench/peers.sh PYTHON [its arguments].
# Its floors and peers have environments of their own (its mkvenvs.sh makes them); what has none is left out.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
python=$(cd "$(dirname "$1")" && pwd)/$(basename "$1"); shift
source=${BENCH_PEERS:-$here/../shared/bench}
[ -f "$source/bench.py" ] || { echo "no benchmark of peers at $source: set BENCH_PEERS to its folder" >&2; exit 1; }
place=$(mktemp -d); trap 'rm -rf "$place"' EXIT
cp -r "$source"/. "$place"; chmod -R u+w "$place"
cp "$here/bench/adapter_deepstrike.py" "$place/frameworks/deepstrike.py"
venvs=$HOME/.cache/deepstrike-bench/venvs
if [ ! -x "$venvs/floor/bin/python" ]; then
    # The server and the floors need no more than what our own environment has.
    venvs=$place/venvs; mkdir -p "$venvs/floor/bin"
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$python" >"$venvs/floor/bin/python"; chmod +x "$venvs/floor/bin/python"
fi
names=bare,raw_asyncio,raw_aiohttp,deepstrike
for peer in pydantic_ai openai_agents langgraph agno; do
    [ -x "$venvs/$peer/bin/python" ] && names+=,$peer
done
cd "$place"
"$python" bench.py --venvs "$venvs" --python "deepstrike=$python" --frameworks "$names" \
    --cases "${CASES:-a,b,c,cd,d500,eh,f}" --reps "${REPS:-3}" "$@"
