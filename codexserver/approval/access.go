package approval

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
)

// An Access is a [Subject]: whether a conversation may have more than the configuration gives.
type Access struct {
	protocol.Access
	// Client is the name of the client that asks, "" if it has none.
	Client string
}

// Facts implements [Action].
func (a Access) Facts(bool) Facts {
	return Facts{Kind: KindAccess, Access: &a.Access, Client: a.Client}
}

// Refusal implements [Action].
func (a Access) Refusal() protocol.Refusal {
	return protocol.Refusal{Kind: string(KindAccess), What: plain.Short(a.Words(), plain.MaxWords)}
}

// Call implements [Subject].
func (a Access) Call() string { return "" }

// Effect implements [Subject].
func (a Access) Effect() Effect { return GoesOn }

// Approver implements [Subject].
func (a Access) Approver() Approver { return PersonAlone }

// Each implements [Subject].
func (a Access) Each(*Rules) bool { return true }

// Rule implements [Subject].
func (a Access) Rule(*Rules, bool) (out elicit.Outcome, decides bool) { return out, false }

// Lasting implements [Subject].
func (a Access) Lasting() Lasting { return Lasting{} }

// Unasked implements [Subject].
func (a Access) Unasked() string { return "" }

// Complete implements [Subject].
func (a Access) Complete(bool) Subject { return a }

// Name implements [Subject].
func (a Access) Name() string { return "more access" }

// Whole implements [Subject].
func (a Access) Whole() []string { return nil }

// Meta implements [Subject].
func (a Access) Meta() map[string]any {
	return map[string]any{"kind": "access", "access": a.Access, "client": a.Client}
}

// Codex implements [Subject].
func (a Access) Codex() *Codex { return nil }

// Event implements [Subject].
func (a Access) Event() protocol.EventMsg { return nil }

// Show implements [Subject].
func (a Access) Show(v View) { v.Message() }

// Question implements [Subject]. An approval holds for the conversation, so there is none for the session.
func (a Access) Question(engine, _ string) *elicit.Question {
	reach, lines, whole := a.parts()
	folder, all := elicit.ShowCode(a.Folder)
	asks := fmt.Sprintf("Allow %s %s in %s?", engine, reach, folder)
	lines = slices.Concat([]string{asks, "It is more than your configuration gives:"}, lines)
	who := "The client"
	if a.Client != "" {
		who += " " + elicit.ShowName(a.Client)
	}
	lines = append(lines, who+" asks for it with this call. Your answer holds for this conversation.")
	folders := append([]string{a.Folder}, a.Roots...)
	also := who + " asks for it, beyond your configuration, for this conversation."
	if a.Provider != "" {
		shown, _ := elicit.ShowCode(a.Provider)
		also = anotherProvider + shown + ". " + also
	}
	if len(a.Beside) > 0 {
		folders, also = nil, "One is another conversation's: wait, or pass worktree: true."
	}
	for _, o := range a.Beside { // each other one is there with the folder beside which it writes
		folders = append(folders, o.Folder, o.Other)
	}
	return &elicit.Question{
		Message: strings.Join(lines, "\n"),
		Brief:   Brief(strings.ToUpper(reach[:1])+reach[1:]+":", elicit.ShowCommand(slices.Compact(folders)), also),
		Once:    true, Partial: !whole || !all, NotDone: "nothing was started",
	}
}

// Words says in a clause what is asked for: "full access, no sandbox in /work".
func (a Access) Words() string {
	reach, _, _ := a.parts()
	var words strings.Builder
	words.WriteString(reach + " in " + elicit.ShowCommand([]string{a.Folder}))
	for _, o := range a.Beside {
		words.WriteString(", beside a conversation in " + elicit.ShowCommand([]string{o.Other}))
	}
	return words.String()
}

const anotherProvider = "Another provider gets the conversation: "

// parts returns all that is asked for: its reach, in at most a line of a brief question, and a line for each
// part, which whole says are shown whole.
func (a Access) parts() (reach string, lines []string, whole bool) {
	var words []string
	whole = true
	show := func(text string) string {
		shown, all := elicit.ShowCode(text)
		whole = whole && all
		return shown
	}
	add := func(asked bool, word, line string) {
		if asked && word != "" && !slices.Contains(words, word) {
			words = append(words, word)
		}
		if asked && line != "" {
			lines = append(lines, "- "+line)
		}
	}
	full := a.Mode == protocol.SandboxDangerFullAccess || a.Mode == "" && a.Policy != ""
	asks := a.Policy == protocol.ApprovalUntrusted
	add(full, "full access, no sandbox", "")
	add(full && a.Mode != "", "", "Full access: no sandbox. Commands can read, change and send all that you can.")
	add(asks, "", "You are still asked before each command that is not known to only read.")
	add(!asks && a.Policy != "", "no questions",
		"Nothing is asked afterwards: every command runs, and every change is made, at once.")
	add(a.Mode == protocol.SandboxWorkspaceWrite, "write access", "It writes in that folder without a question.")
	for _, root := range a.Roots {
		add(true, "more folders", "It writes in "+show(root)+" without a question.")
	}
	for _, o := range a.Beside {
		add(true, "work beside another",
			"It writes in "+show(o.Folder)+" while another conversation, or a program that it left, writes in "+
				show(o.Other)+": commands of one can put a link in the place of the inner folder, and the other then "+
				"writes where that leads.")
		add(true, "", "Without this: wait until the other one has ended, or call with `worktree: true`.")
	}
	add(a.Network && !full, "the network", "")
	add(a.Network, "", "Commands reach the network.")
	add(a.WebSearch, "web search", "The model searches the web.")
	add(a.Provider != "", "another provider", anotherProvider+show(a.Provider)+".")
	return cmp.Or(strings.Join(words, ", "), "more access"), lines, whole
}
