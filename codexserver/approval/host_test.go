package approval_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestTip has a sentence about how less would be asked for. A question of few lines leaves it out.
func TestTip(t *testing.T) {
	q := question(protocol.ExecApprovalRequest{Command: []string{"npm", "install"}, Cwd: "/w", Tip: "Try this."})
	other := q.For(elicit.Client{Name: "another", ProtocolVersion: "2025-11-25"}, briefForm)
	must.Equal(t, "whole", "Allow Codex to run `npm install` in `/w`?\nTry this.", other.Message)
	must.Equal(t, "brief", "In /w:\n`npm install`", q.For(claude, briefForm).Message)
}

// TestHostQuestion asks about hosts, of a client that shows all of a message and of one that cuts it. The host is always whole.
func TestHostQuestion(t *testing.T) {
	const rest = "\nWhat this command can read it can send there.\nIf approved, this command reaches that host by HTTPS, and stays in the sandbox; for the session or always, so does every command in the sandbox."
	wide := strings.Repeat("a", 60) + "." + strings.Repeat("b", 39)
	long := "curl -fsSL https://example.com/" + strings.Repeat("x", 2000)
	for _, tt := range []struct {
		name, host, script, cwd, want, brief string
		offers                               string // of s(ession) and a(lways), to either client
	}{
		{"a script", "registry.npmjs.org", "npm install", "/home/you/app",
			"Allow the network, to the host `registry.npmjs.org`?\nIt is asked for by `npm install` in `/home/you/app`, which runs in the sandbox." + rest,
			"Network, to the host registry.npmjs.org:\n`npm install`\nIn ~/app. What this command can read it can send there.", "sasa"},
		{"a host that is long", wide, "npm install", "/home/you/app",
			"Allow the network, to the host `" + wide + "`?\nIt is asked for by `npm install` in `/home/you/app`, which runs in the sandbox." + rest,
			"Network, where what the command reads can be sent, to the host:\n`" + wide[:71] + "\n" + wide[71:] + "`\nNot shown whole; it is on the approvals page.", "sa"},
		{"a script that is long", "a.com", long, "/w",
			"Allow the network, to the host `a.com`?\nIt is asked for by `" + long[:20], "Network, to the host a.com:\n`curl", ""},
		{"hidden characters", "a.com", "ls\u200b", "/w",
			"Allow the network, to the host `a.com`?\nIt is asked for by `$'ls\\u{200b}'` in `/w`, which runs in the sandbox.\n(contains hidden characters)" + rest,
			"Network, to the host a.com:\n`$'ls\\u{200b}'`\n(contains hidden characters) In /w. What this command can read it can \nsend there.", "sas"},
	} {
		r := protocol.HostRequest{Host: tt.host, Command: []string{"bash", "-lc", tt.script}, Cwd: tt.cwd}
		q := approval.HostQuestion(r, "/home/you")
		if !q.Partial { // else the board offers none
			q.Always = &elicit.Always{Words: "the host " + tt.host + " for all commands, in the sandbox"}
		}
		offers := ""
		for name, want := range map[string]string{"another": tt.want, claude.Name: tt.brief} {
			client := claude
			client.Name = name
			asked := q.For(client, briefForm)
			if name == claude.Name {
				checkBrief(t, tt.name, asked)
			}
			if message, _, _ := strings.Cut(asked.Message, "\nAlways: "); !q.Partial && message != want || !strings.HasPrefix(asked.Message, want) {
				t.Errorf("%s: %s asks\n%s\nwant\n%s", tt.name, name, asked.Message, want)
			}
			if !asked.Once {
				offers += "s"
			}
			if asked.Always != nil {
				offers += "a"
			}
		}
		must.Equal(t, tt.name+" offers", len(tt.offers), len(offers))
	}
}
