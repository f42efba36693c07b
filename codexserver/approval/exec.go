package approval

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
)

// An ExecQuestion asks whether a command may run.
//
// Its message begins with the sentence that Codex uses,
//
//	Allow Codex to run `git init` in `/work`?
//
// and lists everything else on separate lines. Only a command that is too long has a line before it, which says so. All fields but Notes may come from a model:
// they cannot end the sentence, hide a character, or pass for words of the asking program.
type ExecQuestion struct {
	// Subject is who wants to run the command. Empty means Engine.
	Subject string
	// Engine is the name of the engine, as clients since MCP 2025-11-25 are told. Default: "Codex".
	Engine string
	// Command is the program with its arguments.
	Command []string
	// Script is what a brief question shows in place of Command: the script, if Command is only
	// a shell of the system that runs it. Default: Command.
	Script string
	// Cwd is the folder that the command runs in.
	Cwd string
	// Home is the person's home folder, which a brief question writes as ~. Default: none.
	Home string
	// Reason is why, in the model's own words, which the message quotes as the model's.
	Reason string
	// Program is the path that Command[0] resolves to. Set it when that path is inside the
	// workspace, where the model may have put a program with a well-known name.
	Program string
	// Unsandboxed means that the approved command runs outside the session's sandbox.
	Unsandboxed bool
	// NoSandbox means that the session has no sandbox. The message does not say it: the
	// clients of Codex's first server know the sentence alone. Question.Reach does.
	NoSandbox bool
	// Notes are further lines, in the asking program's own words.
	Notes []string
}

// Question builds the question. It sets Once if the command is too long to be shown whole:
// an approval for the session must not cover what was not shown.
func (e *ExecQuestion) Question() *elicit.Question {
	shown, hidden := plain.Command(e.Command)
	cut := plain.Clip(shown, plain.CommandHead, plain.CommandTail)
	cwd, hiddenCwd := plain.Path(e.Cwd)

	var lines []string
	if cut != shown {
		lines = append(lines, fmt.Sprintf("The command is not shown whole: it has %s characters in %s.",
			plain.Thousands(utf8.RuneCountInString(shown)), plain.Counted(countLines(e.Command), "line")))
	}
	first := len(lines)
	asks := func(who string) string {
		return fmt.Sprintf("Allow %s to run %s in %s?", who, plain.Code(cut), plain.Code(plain.Clip(cwd, plain.PathHead, plain.PathTail)))
	}
	lines = append(lines, asks(subject(e.Subject, e.Engine)))
	if hidden || hiddenCwd {
		lines = append(lines, plain.Hidden)
	}
	if e.Program != "" {
		program, hidden := plain.Path(e.Program)
		line := "The program is " + plain.Code(plain.Clip(program, plain.PathHead, plain.PathTail)) + "."
		if hidden {
			line += " " + plain.Hidden
		}
		lines = append(lines, line)
	}
	var reach string
	switch {
	case e.Unsandboxed:
		reach = "If approved, it runs outside the sandbox, once: files and network are open."
		lines = append(lines, reach)
	case e.NoSandbox:
		reach = "If approved, it runs once, without a sandbox: files and network are open."
	}
	for _, note := range e.Notes {
		lines = append(lines, plain.Line(note))
	}
	if e.Reason != "" {
		lines = append(lines, reasonLine(e.Reason))
	}
	message := strings.Join(lines, "\n")
	lines[first] = asks(subject(e.Subject, ""))
	return &elicit.Question{
		Message: message,
		Older:   strings.Join(lines, "\n"),
		Brief:   e.brief(),
		Reach:   reach,
		Inside:  e.Unsandboxed,
		Partial: cut != shown,
		Once:    cut != shown,
		NotDone: "the command was not run",
	}
}

// brief builds the question for a client that cuts messages: where and how far, what runs, and
// what else the person has to know.
func (e *ExecQuestion) brief() *elicit.Brief {
	text, hidden := e.bare()
	how, confined := "In ", ""
	switch {
	case e.Unsandboxed:
		how, confined = "Outside the sandbox, in ", "Outside the sandbox (always: inside), in "
	case e.NoSandbox:
		how, confined = "Without a sandbox, in ", "Without a sandbox (always: in one), in "
	}
	first, whole, hiddenCwd := briefFirst(how, e.Cwd, e.Home)
	b := &elicit.Brief{Reason: briefReason(e.Reason), Home: e.Home}
	if line, whole, _ := briefFirst(cmp.Or(confined, how), e.Cwd, e.Home); whole {
		b.Confined = line
	}
	program, hiddenProgram := plain.Path(e.Program)
	also := briefAlso(e.Subject, hidden || hiddenCwd || e.Program != "" && hiddenProgram)
	if e.Program != "" {
		also = append(also, "The program is "+plain.Code(program)+".")
	}
	for _, note := range e.Notes {
		also = append(also, plain.Line(note))
	}
	b.Lines, b.Partial = briefBody(first, whole, also, func(lines int) ([]string, bool) { return briefCode(text, lines) })
	return b
}

// bare returns the script alone, or else the command.
func (e *ExecQuestion) bare() (shown string, hidden bool) {
	script := strings.TrimRight(e.Script, "\n")
	if script == "" || e.Program != "" { // which may be the shell
		return plain.Command(e.Command)
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

// countLines returns how many lines argv has before it is escaped.
func countLines(argv []string) int {
	n := 1
	for _, word := range argv {
		n += strings.Count(word, "\n")
	}
	return n
}
