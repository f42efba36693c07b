package approval

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
)

// A Command is a [Subject]: whether a command may run.
type Command struct {
	// CallID is the id of the call. Command is an argv, and Cwd the absolute path of its folder.
	CallID  string
	Command []string
	Cwd     string
	// Reason is the model's or, with FromEngine, the engine's; "" without one.
	Reason     string
	FromEngine bool
	// Asker is who asks when it is not the engine itself, such as a sub-agent.
	Asker string
	// LeavesSandbox is true when an approved command would run outside the sandbox of a sandboxed conversation.
	LeavesSandbox bool
	// NoSandbox is true when nothing confines the commands of the conversation.
	NoSandbox bool
	// Network is true when Command is no command but stands for access to a host.
	Network bool
	// Reads is true when the engine itself does what Command says, and that only reads files outside of the
	// conversation's folder.
	Reads bool
	// Confinable is true when the engine runs the command in the sandbox if the approval demands it with Confined in an
	// elicit.Outcome. Otherwise a rule allows the command only if it also allows it outside.
	Confinable bool
	// Once is true when no approval of the command lasts for the session. Where one does, the engine lets the same
	// command run again only inside the sandbox, if LeavesSandbox is true.
	Once bool
	// Human is true when the engine takes only a decision that a person makes now. Then no rule allows the command, and
	// an approval that no person gave does not count.
	Human bool
	// Notes are the engine's sentences about the command.
	Notes []string
	// Tip is a sentence of the engine's about how less would be asked for, which brief questions leave out.
	Tip string
}

// Facts implements [Action].
func (c Command) Facts(bool) Facts { return Facts{Kind: KindCommand, Command: c.Command, Cwd: c.Cwd} }

// Refusal implements [Action].
func (c Command) Refusal() protocol.Refusal {
	what := plain.ShortCommand(decide.Written(c.Command), plain.MaxWords)
	return protocol.Refusal{Kind: string(KindCommand), What: what, Cwd: c.Cwd}
}

// Call implements [Subject].
func (c Command) Call() string { return c.CallID }

// Effect implements [Subject].
func (c Command) Effect() Effect { return Begins }

// Approver implements [Subject].
func (c Command) Approver() Approver {
	if c.Human {
		return PersonOrDenial
	}
	return Anyone
}

// Each implements [Subject].
func (c Command) Each(r *Rules) bool { return c.Human || decide.Mentions(r.Ask, c.Command) }

// Rule implements [Subject].
func (c Command) Rule(r *Rules, each bool) (out elicit.Outcome, decides bool) {
	switch {
	case decide.Mentions(r.Deny, c.Command):
		const words = "a rule of the user denies this command, or what it may hide: " +
			"write its programs and their words plainly"
		return deniedByRule(words), true
	case each:
		return out, false
	}
	return c.allowedBy(r.Allow)
}

// deniedByRule returns the outcome of a rule that denies, with words for the model.
func deniedByRule(feedback string) elicit.Outcome {
	return elicit.Outcome{
		Decision: elicit.Denied, Reason: elicit.ReasonDeclined, Feedback: feedback,
		Detail: "denied by a rule", Level: slog.LevelInfo,
	}
}

// allowedBy allows the command if the rules allow all that it runs.
func (c Command) allowedBy(rules []Rule) (out elicit.Outcome, decides bool) {
	commands, plain := decide.Commands(c.Command)
	if !plain || len(commands) == 0 {
		return out, false
	}
	out = elicit.Outcome{Decision: elicit.Approved, Ruled: true}
	var by []string
	for i, argv := range commands {
		inside, outside := false, false
		var environ []string
		for _, rule := range rules {
			if decide.Begins(rule.Command, argv) {
				if name := strings.Join(rule.Command, " "); !inside && !slices.Contains(by, name) {
					by = append(by, name)
				}
				inside, outside, environ = true, outside || rule.Outside, append(environ, rule.Environ...)
			}
		}
		if i > 0 { // all commands of a script have the same environment, so each needs a rule for it
			environ = slices.DeleteFunc(environ, func(name string) bool { return !slices.Contains(out.Environ, name) })
		}
		out.Environ = environ
		if !outside {
			out.Confined = true
		}
		if !inside || out.Confined && !c.Confinable {
			return elicit.Outcome{}, false
		}
	}
	out.Detail = fmt.Sprintf("allowed by the rule %q", by)
	if out.Confined {
		out.Detail += ", in the sandbox"
	}
	return out, true
}

// Lasting implements [Subject].
func (c Command) Lasting() Lasting {
	if !c.Confinable {
		return Lasting{}
	}
	return Lasting{Command: c.Command, Cwd: c.Cwd}
}

// Unasked implements [Subject].
func (c Command) Unasked() string { return "" }

// Complete implements [Subject].
func (c Command) Complete(each bool) Subject {
	c.Once = c.Once || each
	if c.Human {
		c.Notes = append(slices.Clip(c.Notes), "Only a person may approve this, each time.")
	}
	return c
}

// Name implements [Subject].
func (c Command) Name() string { return "`" + plain.ShortCommand(c.Command, 3*plain.MaxWords) + "`" }

// Whole implements [Subject].
func (c Command) Whole() []string { return c.Command }

// Meta implements [Subject].
func (c Command) Meta() map[string]any {
	m := map[string]any{"kind": "exec", "callId": c.CallID, "command": c.Command, "cwd": c.Cwd}
	if c.Reason != "" {
		m["reason"] = c.Reason
	}
	return m
}

// Codex implements [Subject].
func (c Command) Codex() *Codex {
	return &Codex{
		Members: map[string]any{
			"codex_elicitation": "exec-approval", "codex_call_id": c.CallID,
			"codex_command": c.Command, "codex_cwd": c.Cwd,
		},
		Method: "execCommandApproval",
		Params: func(conversation string) any {
			return protocol.ExecCommandApprovalParams{
				ConversationID: conversation, CallID: c.CallID, Command: c.Command, Cwd: c.Cwd, Reason: c.Reason,
			}
		},
	}
}

// Event implements [Subject].
func (c Command) Event() protocol.EventMsg {
	return protocol.ExecApprovalRequest{CallID: c.CallID, Command: c.Command, Cwd: c.Cwd, Reason: c.Reason}
}

// Show implements [Subject].
func (c Command) Show(v View) { v.Command(c) }

// Question implements [Subject].
//
// Its message begins with the sentence that Codex uses,
//
//	Allow Codex to run `git init` in `/work`?
//
// and lists everything else on separate lines. Only a command that is too long has a line before it, which says so, and
// no approval for the session, which must not cover what was not shown. All of c but Notes may come from a model: it
// cannot end the sentence, hide a character, or pass for words of the asking program.
//
// Clients since MCP 2025-11-25 are told the name of the engine. A brief question writes a script without the shell of
// the system that runs it. A script of one plain command is written without that shell for all but older clients, whose
// programs read the sentence.
func (c Command) Question(engine, home string) *elicit.Question {
	if c.FromEngine {
		c.Notes, c.Reason = append([]string{c.Reason}, c.Notes...), ""
	}
	var reach string
	switch {
	case c.Reads && c.LeavesSandbox:
		reach = "If approved, it reads outside of the working folder, once."
	case c.LeavesSandbox:
		reach = "If approved, it runs outside the sandbox, once: files and network are open."
	case c.NoSandbox: // the message does not say it: clients of Codex's first server know the sentence alone
		reach = "If approved, it runs once, without a sandbox: files and network are open."
	}
	message, cut := execMessage(&c, decide.Written(c.Command), subject(c.Asker, engine), reach)
	older, cutOlder := execMessage(&c, c.Command, subject(c.Asker, ""), reach)
	return &elicit.Question{
		Message: message,
		Older:   older,
		Brief:   execBrief(&c, home),
		Reach:   reach,
		Inside:  c.LeavesSandbox,
		Partial: cut || cutOlder,
		Once:    cut || cutOlder || c.Once,
		NotDone: "the command was not run",
	}
}

// execMessage returns the words of the question of who asks, with the command as argv has it, and whether they do not
// show all of it.
func execMessage(r *Command, argv []string, who, reach string) (message string, partial bool) {
	shown, hidden := plain.Command(argv)
	cut := plain.Clip(shown, plain.CommandHead, plain.CommandTail)
	cwd, hiddenCwd := plain.Path(r.Cwd)
	var lines []string
	if cut != shown {
		lines = append(lines, fmt.Sprintf("The command is not shown whole: it has %s characters in %s.",
			plain.Thousands(utf8.RuneCountInString(shown)),
			plain.Counted(1+strings.Count(strings.Join(argv, ""), "\n"), "line")))
	}
	folder := plain.Code(plain.Clip(cwd, plain.PathHead, plain.PathTail))
	lines = append(lines, fmt.Sprintf("Allow %s to run %s in %s?", who, plain.Code(cut), folder))
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
func execBrief(r *Command, home string) *elicit.Brief {
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
	also := briefAlso(r.Asker, hidden || hiddenCwd, r.Notes)
	b.Lines, b.Partial = briefBody(first, whole, also, func(lines int) ([]string, bool) {
		return briefCode(text, lines)
	})
	return b
}

// bare returns the script alone, or else the command.
func bare(r *Command) (shown string, hidden bool) {
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
