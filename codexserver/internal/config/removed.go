package config

import "strings"

// Instead says what to write instead of a key of codex-mcp.toml, a command, or a flag with its dashes that this
// project had before its first release, "" for any other word.
func Instead(word string) string {
	for row := range strings.Lines(removedKeys + removedWords) {
		if name, instead, _ := strings.Cut(strings.TrimSuffix(row, "\n"), ": "); name == word {
			return instead
		}
	}
	return ""
}

// removedKey returns the path of a key of removedKeys that a layer sets, or nil.
func removedKey(l layer) []string {
	for row := range strings.Lines(removedKeys) {
		name, _, _ := strings.Cut(row, ": ")
		if path := strings.Split(name, "."); at(l, path) != nil {
			return path
		}
	}
	return nil
}

const removedKeys = `always_load: write calls.always_load
approvals.automatic: nothing replaces it
approvals.legacy_flat: nothing replaces it
approvals.max_pending: nothing replaces it
approvals.page: write approvals.where = "both"
approvals.passkey: nothing replaces it
changes.after: nothing replaces it
changes.before: nothing replaces it
changes.files: nothing replaces it
changes.track: write calls.changes
drain.timeout: write http.drain_timeout
failover.stay: nothing replaces it
failover.wait: nothing replaces it
fetch.enabled: nothing replaces it
keep.log: nothing replaces it
limits.response_bytes: nothing replaces it
limits.tool_calls: nothing replaces it
locked_arguments: write calls.locked_arguments
notify.after: nothing replaces it
notify.on: the program of notify.command reads the type
results.hint: nothing replaces it
tasks.grace: write calls.grace
tasks.mode: write calls.tasks
tasks.resume: write calls.resume
trusted_calls: write calls.trusted
`

const removedWords = `log: read the file that approvals.log names, which has one JSON object a line
login: write codex login, or set OPENAI_API_KEY; codex-mcp doctor says what is missing
passkey: write codex-mcp page
rules check: write codex-mcp rules, which lists the rules
rules try: write codex-mcp rules, which lists the rules
tasks: write codex-mcp page, whose page lists the tasks
version: write codex-mcp --version
--attach: write codex-mcp page, whose page shows the questions
--connect: write --shared, or connect to codex-mcp http with mcp-remote
--demo: write codex-mcp ask --demo
--finish: input without initialize is finished without it
--new-token: start codex-mcp-gateway for several users
--tls-cert: write --behind-proxy with the address of a proxy with TLS
--tls-key: write --behind-proxy with the address of a proxy with TLS
--verbose: write codex-mcp doctor --json
`
