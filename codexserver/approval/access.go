package approval

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// AccessQuestion returns the question whether a conversation may have more than the configuration
// gives. Engine is the name of the engine. An approval holds for the conversation, so there is none for the session.
func AccessQuestion(r protocol.AccessRequest, engine string) *elicit.Question {
	whole := true
	show := func(text string) string {
		shown, all := elicit.ShowCode(text)
		whole = whole && all
		return shown
	}
	reach, provider := accessReach(r), ""
	lines := []string{fmt.Sprintf("Allow %s %s in %s?", engine, reach, show(r.Folder)), "It is more than your configuration gives:"}
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
		lines = append(lines, "- It writes in "+show(root)+" without a question.")
	}
	if r.Network {
		lines = append(lines, "- Commands reach the network.")
	}
	if r.WebSearch {
		lines = append(lines, "- The model searches the web.")
	}
	if r.Provider != "" {
		provider = "Another provider gets the conversation: " + show(r.Provider) + ". "
		lines = append(lines, "- "+strings.TrimSpace(provider))
	}
	folders := append([]string{r.Folder}, r.Roots...)
	if len(r.Beside) > 0 {
		folders = nil // each other one is there with the folder beside which it writes
	}
	for _, o := range r.Beside {
		folders = append(folders, o.Folder, o.Other)
		lines = append(lines, "- It writes in "+show(o.Folder)+" while another conversation, or a program that it left, writes in "+show(o.Other)+": commands of one can put a link in the place of the inner folder, and the other then writes where that leads.",
			"- Without this: wait until the other one has ended, or call with `worktree: true`.")
	}
	who := "The client"
	if r.Client != "" {
		who += " " + elicit.ShowName(r.Client)
	}
	lines = append(lines, who+" asks for it with this call. Your answer holds for this conversation.")
	also := provider + who + " asks for it, beyond your configuration, for this conversation."
	if len(r.Beside) > 0 {
		also = "One is another conversation's: wait, or pass worktree: true."
	}
	return &elicit.Question{
		Message: strings.Join(lines, "\n"),
		Brief:   Brief(strings.ToUpper(reach[:1])+reach[1:]+":", elicit.ShowCommand(slices.Compact(folders)), also),
		Once:    true, Partial: !whole, NotDone: "nothing was started",
	}
}

// AccessWords says in a clause what a request asks for: "full access, no sandbox in /work".
func AccessWords(r protocol.AccessRequest) string {
	var words strings.Builder
	words.WriteString(accessReach(r) + " in " + elicit.ShowCommand([]string{r.Folder}))
	for _, o := range r.Beside {
		words.WriteString(", beside a conversation in " + elicit.ShowCommand([]string{o.Other}))
	}
	return words.String()
}

// accessReach names all that a request asks for, in at most a line of a brief question.
func accessReach(r protocol.AccessRequest) string {
	var all []string
	full := r.Mode == protocol.SandboxDangerFullAccess || r.Mode == "" && r.Policy != ""
	for _, part := range []struct {
		words string
		asked bool
	}{
		{"full access, no sandbox", full},
		{"no questions", r.Policy != "" && r.Policy != protocol.ApprovalUntrusted},
		{"write access", r.Mode == protocol.SandboxWorkspaceWrite},
		{"more folders", len(r.Roots) > 0},
		{"work beside another", len(r.Beside) > 0},
		{"the network", r.Network && !full},
		{"web search", r.WebSearch},
		{"another provider", r.Provider != ""},
	} {
		if part.asked {
			all = append(all, part.words)
		}
	}
	return cmp.Or(strings.Join(all, ", "), "more access")
}
