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
	reach, lines, whole := accessParts(r)
	folder, all := elicit.ShowCode(r.Folder)
	lines = append([]string{fmt.Sprintf("Allow %s %s in %s?", engine, reach, folder), "It is more than your configuration gives:"}, lines...)
	who := "The client"
	if r.Client != "" {
		who += " " + elicit.ShowName(r.Client)
	}
	lines = append(lines, who+" asks for it with this call. Your answer holds for this conversation.")
	folders, also := append([]string{r.Folder}, r.Roots...), who+" asks for it, beyond your configuration, for this conversation."
	if r.Provider != "" {
		shown, _ := elicit.ShowCode(r.Provider)
		also = anotherProvider + shown + ". " + also
	}
	if len(r.Beside) > 0 {
		folders, also = nil, "One is another conversation's: wait, or pass worktree: true."
	}
	for _, o := range r.Beside { // each other one is there with the folder beside which it writes
		folders = append(folders, o.Folder, o.Other)
	}
	return &elicit.Question{
		Message: strings.Join(lines, "\n"),
		Brief:   Brief(strings.ToUpper(reach[:1])+reach[1:]+":", elicit.ShowCommand(slices.Compact(folders)), also),
		Once:    true, Partial: !whole || !all, NotDone: "nothing was started",
	}
}

// AccessWords says in a clause what a request asks for: "full access, no sandbox in /work".
func AccessWords(r protocol.AccessRequest) string {
	reach, _, _ := accessParts(r)
	var words strings.Builder
	words.WriteString(reach + " in " + elicit.ShowCommand([]string{r.Folder}))
	for _, o := range r.Beside {
		words.WriteString(", beside a conversation in " + elicit.ShowCommand([]string{o.Other}))
	}
	return words.String()
}

const anotherProvider = "Another provider gets the conversation: "

// accessParts returns all that a request asks for: its reach, in at most a line of a brief question, and a line for each
// part, which whole says are shown whole.
func accessParts(r protocol.AccessRequest) (reach string, lines []string, whole bool) {
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
	full, asks := r.Mode == protocol.SandboxDangerFullAccess || r.Mode == "" && r.Policy != "", r.Policy == protocol.ApprovalUntrusted
	add(full, "full access, no sandbox", "")
	add(full && r.Mode != "", "", "Full access: no sandbox. Commands can read, change and send all that you can.")
	add(asks, "", "You are still asked before each command that is not known to only read.")
	add(!asks && r.Policy != "", "no questions", "Nothing is asked afterwards: every command runs, and every change is made, at once.")
	add(r.Mode == protocol.SandboxWorkspaceWrite, "write access", "It writes in that folder without a question.")
	for _, root := range r.Roots {
		add(true, "more folders", "It writes in "+show(root)+" without a question.")
	}
	for _, o := range r.Beside {
		add(true, "work beside another", "It writes in "+show(o.Folder)+" while another conversation, or a program that it left, writes in "+show(o.Other)+": commands of one can put a link in the place of the inner folder, and the other then writes where that leads.")
		add(true, "", "Without this: wait until the other one has ended, or call with `worktree: true`.")
	}
	add(r.Network && !full, "the network", "")
	add(r.Network, "", "Commands reach the network.")
	add(r.WebSearch, "web search", "The model searches the web.")
	add(r.Provider != "", "another provider", anotherProvider+show(r.Provider)+".")
	return cmp.Or(strings.Join(words, ", "), "more access"), lines, whole
}
