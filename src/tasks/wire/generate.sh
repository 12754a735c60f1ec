#!/usr/bin/env bash
# Makes asynq-messages.gen.ts from asynq.proto. Needs buf and protoc-gen-es on the PATH: see there.
set -euo pipefail
cd "$(dirname "$0")"

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
buf generate asynq.proto --template '{
  "version": "v2",
  "plugins": [{ "local": "protoc-gen-es", "out": "'"$out"'", "opt": ["target=ts"] }]
}'
# Without the comments, which repeat asynq.proto.
perl -0pe 's{^ */\*\*.*?\*/\n}{}gms; s{;\n\n  }{;\n  }g' "$out/asynq_pb.ts" > asynq-messages.gen.ts
npm exec --prefix ../../../tools -- oxfmt asynq-messages.gen.ts
