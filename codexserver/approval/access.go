package approval

import (
	"fmt"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// AccessQuestion returns the question whether a conversation may have more than the configuration
// gives. Engine is the name of the engine. An approval holds for the conversation, so there is none for the session.
func AccessQuestion(r protocol.AccessRequest, engine string) *elicit.Question {
	folder, whole := elicit.ShowCode(r.Folder)
	lines := []string{fmt.Sprintf("Allow %s to work in %s with more than your configuration gives?", engine, folder)}
	if r.Mode == protocol.SandboxDangerFullAccess {
		lines = append(lines, "- Full access: no sandbox. Commands can read, change and send all that you can.")
	}
	switch r.Policy {
	case "":
	case protocol.ApprovalUntrusted:
		lines = append(lines, "- You are still asked before each command that is not known to only read.")
	default:
		lines = append(lines, "- Nothing is asked afterwards: every command runs, and every change is made, at once.")
	}
	if r.Mode == protocol.SandboxWorkspaceWrite {
		lines = append(lines, "- It writes in that folder without a question.")
	}
	for _, root := range r.Roots {
		shown, all := elicit.ShowCode(root)
		whole = whole && all
		lines = append(lines, "- It writes in "+shown+" without a question.")
	}
	if r.Network {
		lines = append(lines, "- Commands reach the network.")
	}
	if r.WebSearch {
		lines = append(lines, "- The model searches the web.")
	}
	if r.Provider != "" {
		shown, all := elicit.ShowCode(r.Provider)
		whole = whole && all
		lines = append(lines, "- Another provider gets the conversation: "+shown+".")
	}
	who := "The client"
	if r.Client != "" {
		who += " " + elicit.ShowName(r.Client)
	}
	lines = append(lines, who+" asks for it with this call. Your answer holds for this conversation.")
	return &elicit.Question{Message: strings.Join(lines, "\n"), Once: true, Partial: !whole, NotDone: "nothing was started"}
}

// AccessWords says in a clause what a request asks for: "full access in /work".
func AccessWords(r protocol.AccessRequest) string {
	var all []string
	switch r.Mode {
	case protocol.SandboxDangerFullAccess:
		all = append(all, "full access")
	case protocol.SandboxWorkspaceWrite:
		all = append(all, "write access")
	}
	if r.Mode == "" && r.Policy != "" {
		all = append(all, "full access without questions")
	}
	if r.Network {
		all = append(all, "network access")
	}
	if r.WebSearch {
		all = append(all, "web search")
	}
	if len(r.Roots) > 0 {
		all = append(all, "further writable folders")
	}
	if r.Provider != "" {
		all = append(all, "another model provider")
	}
	return strings.Join(all, ", ") + " in " + elicit.ShowCommand([]string{r.Folder})
}
