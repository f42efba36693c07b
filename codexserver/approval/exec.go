package approval

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
)

// ExecQuestion returns the question whether a command may run.
//
// Its message begins with the sentence that Codex uses,
//
//	Allow Codex to run `git init` in `/work`?
//
// and lists everything else on separate lines. Only a command that is too long has a line before it, which says so, and
// no approval for the session, which must not cover what was not shown. All of r but Notes may come from a model: it
// cannot end the sentence, hide a character, or pass for words of the asking program.
//
// Engine is the name of the engine, as clients since MCP 2025-11-25 are told, by default "Codex". A brief question writes
// home, the person's home folder, as ~, and a script without the shell of the system that runs it. A script of one plain
// command is written without that shell for all but older clients, whose programs read the sentence.
func ExecQuestion(r protocol.ExecApprovalRequest, engine, home string) *elicit.Question {
	if r.FromEngine {
		r.Notes, r.Reason = append([]string{r.Reason}, r.Notes...), ""
	}
	var reach string
	switch {
	case r.Reads && r.LeavesSandbox:
		reach = "If approved, it reads outside of the working folder, once."
	case r.LeavesSandbox:
		reach = "If approved, it runs outside the sandbox, once: files and network are open."
	case r.NoSandbox: // the message does not say it: clients of Codex's first server know the sentence alone
		reach = "If approved, it runs once, without a sandbox: files and network are open."
	}
	message, cut := execMessage(&r, decide.Written(r.Command), subject(r.Subject, engine), reach)
	older, cutOlder := execMessage(&r, r.Command, subject(r.Subject, ""), reach)
	return &elicit.Question{
		Message: message,
		Older:   older,
		Brief:   execBrief(&r, home),
		Reach:   reach,
		Inside:  r.LeavesSandbox,
		Partial: cut || cutOlder,
		Once:    cut || cutOlder || r.Once,
		NotDone: "the command was not run",
	}
}

// execMessage returns the words of the question of who asks, with the command as argv has it, and whether they do not show
// all of it.
func execMessage(r *protocol.ExecApprovalRequest, argv []string, who, reach string) (message string, partial bool) {
	shown, hidden := plain.Command(argv)
	cut := plain.Clip(shown, plain.CommandHead, plain.CommandTail)
	cwd, hiddenCwd := plain.Path(r.Cwd)
	var lines []string
	if cut != shown {
		lines = append(lines, fmt.Sprintf("The command is not shown whole: it has %s characters in %s.",
			plain.Thousands(utf8.RuneCountInString(shown)), plain.Counted(1+strings.Count(strings.Join(argv, ""), "\n"), "line")))
	}
	lines = append(lines, fmt.Sprintf("Allow %s to run %s in %s?", who, plain.Code(cut), plain.Code(plain.Clip(cwd, plain.PathHead, plain.PathTail))))
	if hidden || hiddenCwd {
		lines = append(lines, plain.Hidden)
	}
	if r.LeavesSandbox {
		lines = append(lines, reach)
	}
	for _, note := range r.Notes {
		lines = append(lines, plain.Line(note))
	}
	if r.Reason != "" {
		lines = append(lines, reasonLine(r.Reason))
	}
	if r.Tip != "" {
		lines = append(lines, plain.Line(r.Tip))
	}
	return strings.Join(lines, "\n"), cut != shown
}

// execBrief builds the question for a client that cuts messages: where and how far, what runs, and
// what else the person has to know.
func execBrief(r *protocol.ExecApprovalRequest, home string) *elicit.Brief {
	text, hidden := bare(r)
	how, confined := "Run in ", ""
	switch {
	case r.LeavesSandbox && r.Reads:
		how = "Read outside of "
	case r.LeavesSandbox:
		how, confined = "Run outside the sandbox, in ", "Run outside the sandbox (always: inside), in "
	case r.NoSandbox:
		how, confined = "Run without a sandbox, in ", "Run without a sandbox (always: in one), in "
	case r.Network:
		how = "Network access, in "
	}
	first, whole, hiddenCwd := briefFirst(how, r.Cwd, home)
	b := &elicit.Brief{Reason: briefReason(r.Reason), Home: home}
	if line, whole, _ := briefFirst(cmp.Or(confined, how), r.Cwd, home); whole {
		b.Confined = line
	}
	also := briefAlso(r.Subject, hidden || hiddenCwd, r.Notes)
	b.Lines, b.Partial = briefBody(first, whole, also, func(lines int) ([]string, bool) { return briefCode(text, lines) })
	return b
}

// bare returns the script alone, or else the command.
func bare(r *protocol.ExecApprovalRequest) (shown string, hidden bool) {
	script, _ := decide.ShellScript(r.Command)
	script = strings.TrimRight(script, "\n")
	if script == "" {
		return plain.Command(r.Command)
	}
	if _, escaped, _ := plain.Escape(script, ""); escaped || strings.HasPrefix(script, "$'") {
		return plain.Word(script)
	}
	return script, false
}

// subject returns the name of who asks, a sub-agent or the engine, escaped for display.
func subject(name, engine string) string { return plain.Line(cmp.Or(name, engine, "Codex")) }

// reasonLine returns the line that quotes the model's reason.
func reasonLine(reason string) string {
	return "Reason given by the model: " + plain.Quote(reason)
}
