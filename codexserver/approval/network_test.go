package approval_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestNetwork asks about hosts, of a client that shows all of a message and of one that cuts it. The host is always whole.
func TestNetwork(t *testing.T) {
	const rest = "\nWhat this command can read it can send there.\nIf approved, this command reaches that host by HTTPS, and stays in the sandbox; for the session or always, so does every command in the sandbox."
	wide := strings.Repeat("a", 60) + "." + strings.Repeat("b", 39)
	long := "curl -fsSL https://example.com/" + strings.Repeat("x", 2000)
	for _, tt := range []struct {
		host, script, want, brief string // how the questions begin
		whole, wholeBrief         bool
	}{
		{"registry.npmjs.org", "npm install",
			"Allow the network, to the host `registry.npmjs.org`?\nIt is asked for by `npm install` in `/home/you/app`, which runs in the sandbox." + rest,
			"Network, to the host registry.npmjs.org:\n`npm install`\nIn ~/app. What this command can read it can send there.", true, true},
		{wide, "npm install",
			"Allow the network, to the host `" + wide + "`?\nIt is asked for by `npm install` in `/home/you/app`, which runs in the sandbox." + rest,
			"Network, for what it reads, to the host `" + wide[:31] + "\n" + wide[31:] + "`:\n`npm install`\nNot shown whole; it is on the approvals page.", true, false},
		{wide[9:], long, "Allow the network, to the host `" + wide[9:] + "`?\nIt is asked for by `" + long[:20],
			"Network, for what it reads, to the host `" + wide[9:40] + "\n" + wide[40:] + "`:\n`curl -fsSL https://examp`", false, false},
		{wide[49:], "ls\u200b", "Allow the network, to the host `" + wide[49:] + "`?\nIt is asked for by `$'ls\\u{200b}'`",
			"Network, for what it reads, to the host `" + wide[49:80] + "\n" + wide[80:] + "`:\n`$'ls\\u{200b}'`\nNot shown", true, false},
		{"a.com", long, "Allow the network, to the host `a.com`?\nIt is asked for by `" + long[:20], "Network, to the host a.com:\n`curl", false, false},
		{"a.com", "ls\u200b",
			"Allow the network, to the host `a.com`?\nIt is asked for by `$'ls\\u{200b}'` in `/home/you/app`, which runs in the sandbox.\n(contains hidden characters)" + rest,
			"Network, to the host a.com:\n`$'ls\\u{200b}'`\n(contains hidden characters) In ~/app. What this command can read it \ncan send there.", true, true},
	} {
		q := (approval.Network{Hostname: tt.host, Command: []string{"bash", "-lc", tt.script}, Cwd: "/home/you/app"}).Question("", "/home/you")
		asked, brief := q.For(elicit.Client{Name: "another", ProtocolVersion: "2025-11-25"}, briefForm), q.For(claude, briefForm)
		checkBrief(t, tt.script, brief)
		must.Equal(t, tt.script, tt.want, asked.Message[:min(len(tt.want), len(asked.Message))])
		must.Equal(t, tt.script+", brief", tt.brief, brief.Message[:min(len(tt.brief), len(brief.Message))])
		must.Equal(t, tt.script+" is allowed for the session", []bool{tt.whole, tt.wholeBrief}, []bool{!asked.Once, !brief.Once})
	}
}
