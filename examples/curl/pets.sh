#!/bin/sh
# Adds an animal by REST and by GraphQL, and walks the list page by page.
set -eu
: "${KEY:?KEY must be an API key of the store}"
url=${STORE_URL:-http://127.0.0.1:4000}
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT

# curl reads the key from standard input, because all users of the machine can see arguments. curl retries after 429 and
# 503, and follows Retry-After.
call() {
  printf 'header = "Authorization: Bearer %s"\n' "$KEY" |
    curl --silent --show-error --fail-with-body --retry 4 --retry-connrefused --retry-max-time 60 --max-time 30 --config - "$@" || return
  echo
}

# A creation with an Idempotency-Key is executed once, even if it is sent again.
create() {
  name=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  call --header "Idempotency-Key: $name" --json "$2" "$url$1"
}

echo '- added by REST'
create /v1/pets '{"name":"Rex","categoryId":9007199254740993}'

echo '- added by GraphQL'
create /graphql '{"query":"mutation Create($input: NewPet!) { createPet(input: $input) { id name categoryId } }",
  "variables":{"input":{"name":"Tom","categoryId":"9007199254740993","status":"sold"}}}'

echo '- all, two at a time'
after=
while
  call --dump-header "$scratch/headers" "$url/v1/pets?limit=2${after:+&after=$after}" || exit
  after=$(sed -n 's/^[Ll]ink: <[^>]*[?&]after=\(-\{0,1\}[0-9]*\)[^>]*>; rel="next".*/\1/p' "$scratch/headers")
  [ -n "$after" ]
do :; done
