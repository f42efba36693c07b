package elicit

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"
)

// An ExecQuestion asks whether a command may run.
//
// Its message begins with the sentence that Codex uses,
//
//	Allow Codex to run `git init` in `/work`?
//
// and lists everything else on separate lines. All fields but Notes may come from a model:
// they cannot end the sentence, hide a character, or pass for words of the asking program.
type ExecQuestion struct {
	// Subject is who wants to run the command. Empty means "Codex".
	Subject string
	// Command is the program with its arguments.
	Command []string
	// Cwd is the folder that the command runs in.
	Cwd string
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
func (e *ExecQuestion) Question() *Question {
	shown, hidden := showCommand(e.Command)
	cut := clip(shown, commandHead, commandTail)
	cwd, hiddenCwd := showPath(e.Cwd)

	lines := []string{fmt.Sprintf("Allow %s to run %s in %s?",
		subject(e.Subject), codeSpan(cut), codeSpan(clip(cwd, pathHead, pathTail)))}
	if hidden || hiddenCwd {
		lines = append(lines, hiddenMarker)
	}
	if cut != shown {
		lines = append(lines, fmt.Sprintf("The command is not shown whole: it has %s characters in %s lines.",
			thousands(utf8.RuneCountInString(shown)), thousands(countLines(e.Command))))
	}
	if e.Program != "" {
		program, hidden := showPath(e.Program)
		line := "The program is " + codeSpan(clip(program, pathHead, pathTail)) + "."
		if hidden {
			line += " " + hiddenMarker
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
		lines = append(lines, showLine(note))
	}
	if e.Reason != "" {
		lines = append(lines, reasonLine(e.Reason))
	}
	return &Question{
		Message: strings.Join(lines, "\n"),
		Reach:   reach,
		Session: sessionLimit,
		Once:    cut != shown,
		NotDone: notRun,
	}
}

// sessionLimit says what an approval of a command for the session does not cover.
const sessionLimit = "An approval for the session does not cover a changed file that the command names. " +
	"Other files that it reads, such as a makefile, may change."

// subject returns the name of who asks, escaped for display.
func subject(name string) string { return showLine(cmp.Or(name, "Codex")) }

// reasonLine returns the line that quotes the model's reason.
func reasonLine(reason string) string {
	return "Reason given by the model: " + showQuote(reason)
}

// countLines returns how many lines argv has before it is escaped.
func countLines(argv []string) int {
	n := 1
	for _, word := range argv {
		n += strings.Count(word, "\n")
	}
	return n
}
