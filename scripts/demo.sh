#!/usr/bin/env bash
# The main job, end to end, in a directory that is removed at the end. Every command is printed before it runs, and
# the demo fails when a command ends otherwise, or says something else, than announced.
set -euo pipefail
unset SWAMP_REPO_DIR SWAMP_DATASTORE SWAMP_LOCK_TIMEOUT_MS SWAMP_DATASTORE_SYNC_TIMEOUT_MS

home=$(mktemp -d)
holder=
clean_up() {
  if [ -n "$holder" ]; then kill "$holder" 2>/dev/null || true; fi
  rm -rf "$home"
}
trap clean_up EXIT
cd "$home"

say() { printf '\n# %s\n' "$*"; }

# run EXIT TEXT COMMAND: COMMAND must end with EXIT, and TEXT must be in what it prints.
run() {
  local want=$1 text=$2 command=$3 out code=0
  printf '$ %s\n' "$command"
  out=$(eval "$command" 2>&1) || code=$?
  if [ -n "$out" ]; then printf '%s\n' "$out"; fi
  if [ "$code" != 0 ]; then printf '(exit %s)\n' "$code"; fi
  if [ "$code" != "$want" ] || [[ $out != *"$text"* ]]; then
    printf '\nDEMO FAILED: expected exit %s and "%s"\n' "$want" "$text" >&2
    exit 1
  fi
}

# python_says TEXT CODE: TEXT must be in what a piece of Python prints.
python_says() {
  local out
  printf '>>> %s\n' "${2//$'\n'/$'\n'>>> }"
  out=$(python -c "$2" 2>&1) || { printf '%s\n\nDEMO FAILED\n' "$out" >&2; exit 1; }
  printf '%s\n' "$out"
  if [[ $out != *"$1"* ]]; then printf '\nDEMO FAILED: expected "%s"\n' "$1" >&2; exit 1; fi
}

say 'A repository is a directory with a settings file; the data lives in .swamp/ beside it.'
run 0 'a repository' 'mire init'

say 'Store three versions of the state of a network. Each put makes a new version.'
for n in 0 1 2; do
  run 0 "version $((n + 1))" \
    "echo '{\"cidr\": \"10.$n.0.0/16\"}' | mire put aws/ec2/vpc vpc-1 state --content-type application/json --tag env=prod"
done

say 'Read the latest one, and an old one by number.'
run 0 '10.2.0.0' 'mire get aws/ec2/vpc vpc-1 state'
run 0 '10.0.0.0' 'mire get aws/ec2/vpc vpc-1 state --version 1'
run 0 'latest' 'mire versions aws/ec2/vpc vpc-1 state'
run 0 'env=prod' 'mire show aws/ec2/vpc vpc-1 state'

say 'Rename it. The old name forwards to the new one, and keeps its history.'
run 0 'network' 'mire mv aws/ec2/vpc vpc-1 state network'
run 0 '10.2.0.0' 'mire get aws/ec2/vpc vpc-1 state'
run 0 '10.1.0.0' 'mire get aws/ec2/vpc vpc-1 state --version 2'
run 4 'renamed' "echo '{}' | mire put aws/ec2/vpc vpc-1 state"

say 'Streaming data can grow.'
run 0 'version 1' 'echo "create started" | mire put aws/ec2/vpc vpc-1 log --streaming --content-type text/plain'
run 0 'version 1' 'echo "create done" | mire append aws/ec2/vpc vpc-1 log'
run 0 $'create started\ncreate done' 'mire get aws/ec2/vpc vpc-1 log'

say 'Delete the highest version. Its number is not given out again: the next one is 3.'
run 0 'version 2' "echo '{\"cidr\": \"wrong\"}' | mire put aws/ec2/vpc vpc-1 network --content-type application/json"
run 0 'version 2' 'mire rm aws/ec2/vpc vpc-1 network --version 2'
run 0 '10.2.0.0' 'mire get aws/ec2/vpc vpc-1 network'
run 0 'version 3' "echo '{\"cidr\": \"10.3.0.0/16\"}' | mire put aws/ec2/vpc vpc-1 network --content-type application/json"
run 3 'no version 2' 'mire get aws/ec2/vpc vpc-1 network --version 2'

say 'Ask by what is in it: a predicate over metadata and content, answered from an index that follows the files.'
run 0 '10.3.0.0/16' "mire query 'tags.type == \"resource\" && attributes.cidr.startsWith(\"10.\")' --select attributes.cidr"
run 0 'sql' "mire query 'modelType == \"aws/ec2/vpc\" && attributes.cidr != \"\"' --explain"
run 0 '' 'printf garbage >.swamp/data/_catalog.db-mire-1.sqlite'
run 0 'vpc-1' 'mire search vpc network'

say 'Keep only the newest version of a log, but one that is held stays.'
for n in 1 2 3; do run 0 "version $n" "echo $n | mire put svc web log --gc 1"; done
run 0 '' 'mire hold svc web log --version 1 --reason evidence'
run 0 'version' 'mire retain --dry-run'
run 0 '' 'mire retain'
run 0 $'\n1 ' 'mire versions svc web log'

say 'Programs record what they did: a method execution, a workflow run, an audit event.'
python_says '1 output, 1 run, 1 event' 'import mire
store = mire.open(".")
vpc = store.model("aws/ec2/vpc", "vpc-1")
output = store.outputs.start("aws/ec2/vpc", "31f6d0aa-8c47-4b0e-a5d9-e47c2b19f603", "create")
store.outputs.finish(output, artifacts=[vpc.get("network").metadata])
store.runs.finish(store.runs.start("9d7f3c10-2b6a-4e88-8c31-6f5a0e9b4d21", "nightly"))
store.audit.command("create vpc-1", exit_code=0)
print(f"{len(store.outputs.list())} output, {len(store.runs.list())} run, {len(store.audit.list())} event")'
run 0 'create vpc-1' 'mire log'
run 0 'nightly' 'mire log --kind run'
run 0 'aws/ec2/vpc create' 'mire log --kind output'

say 'Two processes write the same model at once. Each waits for the other; both succeed.'
run 0 'version 2' 'echo left | mire put aws/ec2/vpc vpc-1 race & left=$!
echo right | mire put aws/ec2/vpc vpc-1 race & right=$!
wait $left && wait $right'
run 0 $'\n2' 'mire versions aws/ec2/vpc vpc-1 race'

say 'Somebody holds the lock of the model. A writer gives up after the time it was given, with exit code 75.'
mkfifo ready
python -c 'import mire, signal
with mire.open(".").model("aws/ec2/vpc", "vpc-1").hold():
    print("held", flush=True)
    signal.pause()' >ready &
holder=$!
read -r answer <ready # fails when the holder died instead
[ "$answer" = held ]
run 0 "$holder" 'mire lock status'
run 75 "pid $holder" 'echo late | mire put aws/ec2/vpc vpc-1 race --lock-timeout 1'

say 'The holder dies without giving its lock back. On its own host that is noticed at once.'
{ run 0 '' "kill -9 $holder" && wait "$holder"; } 2>/dev/null || true # bash reports the death there
holder=
run 0 'stale' 'mire lock status'
run 0 'version 3' 'echo late | mire put aws/ec2/vpc vpc-1 race --lock-timeout 1'
run 0 'no locks' 'mire lock status'

say 'One byte of stored content changes behind our back. Reading says so instead of handing it out: exit code 7.'
run 0 '' 'printf X | dd of=.swamp/data/aws/ec2/vpc/vpc-1/network/1/raw bs=1 conv=notrunc 2>/dev/null'
run 7 'damaged' 'mire get aws/ec2/vpc vpc-1 network --version 1'
run 0 '10.3.0.0' 'mire get aws/ec2/vpc vpc-1 network'

say 'What there is now, on disk in plain files, and whether all is well.'
run 0 'network' 'mire ls aws/ec2/vpc vpc-1'
run 0 'metadata.yaml' 'find .swamp/data/aws/ec2/vpc/vpc-1/network -type f | sort'
run 0 'ok' 'mire status'

say 'A remote: two repositories share a directory (it could be a bucket), each with a cache of its own.'
mkdir home && export HOME=$home/home # caches are below the home directory
run 0 '' 'mkdir share two'
run 0 'uses file://' 'mire setup "file://$PWD/share" --cached'
run 0 'a repository' 'mire init two'
run 2 'add --yes' 'mire --repo two setup "file://$PWD/share" --cached'
run 0 'uses file://' 'mire --repo two setup "file://$PWD/share" --cached --yes'

say 'What one puts, the other pulls; content comes when it is read.'
run 0 'version 1' 'echo "listen 8080" | mire put svc api config'
run 0 'stays there until it is read' 'mire --repo two pull'
run 0 'listen 8080' 'mire --repo two get svc api config'

say 'The share is not there: the work goes on in the cache, and waits.'
run 0 '' 'mv share away'
run 0 'could not be reached' 'echo "listen 9090" | mire put svc api config'
run 0 'listen 9090' 'mire get svc api config'
run 0 'config/2' 'mire status'
run 5 'stays marked' 'mire push'
run 0 '' 'mv away share'

say 'Meanwhile somebody else wrote version 2, too. Nothing is overwritten: both are shown, with exit code 4.'
run 0 'version 2' 'echo "listen 7070" | mire --repo two put svc api config'
run 4 'conflict: data/svc/api/config/2/raw' 'mire push'
run 0 'theirs won' 'mire pull --theirs'
run 0 'listen 7070' 'mire get svc api config'
run 0 'nothing to push' 'mire push'

say 'Index, cache and content are compared; the byte that was changed above is found here, too.'
run 7 'its metadata says' 'mire verify'
run 7 'something is damaged' 'mire --repo two verify'
run 0 'deleted' 'mire rm aws/ec2/vpc vpc-1 network'
run 0 'nothing is damaged' 'mire verify'
run 0 'removed 3' 'mire --repo two pull'
run 0 'shards' 'mire index migrate'
run 0 'nothing to pull' 'mire --repo two pull'

say 'Many repositories share one store: each in a namespace that only it writes.'
run 0 'a repository' 'mire init red --datastore "filesystem:$PWD/common"'
run 0 'a repository' 'mire init blue --datastore "filesystem:$PWD/common"'
run 0 'the namespace red' 'mire --repo red namespace set red'
run 0 'the namespace blue' 'mire --repo blue namespace set blue'
run 4 'belongs to the repository' 'mire init green --datastore "filesystem:$PWD/common" && mire --repo green namespace set red'
run 0 'version 1' 'echo "of red" | mire --repo red put svc web state'
run 0 'version 1' 'echo "of blue" | mire --repo blue put svc web state'
run 0 'of red' 'mire --repo red get svc web state'
run 0 'moved 3 files' 'mire --repo red namespace migrate --reverse'
run 0 'common/data/svc/web/state/1/raw' 'find common -name raw | sort'
run 0 'nothing is mixed up' 'mire --repo blue namespace doctor'

printf '\nThe demo did what it said.\n'
