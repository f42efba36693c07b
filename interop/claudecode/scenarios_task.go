package main

import (
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// A terminal that knows tasks puts the call into the background.

// background starts Claude Code, has the model hand over tasks, and waits until it learns
// that they run.
func (s *stage) background(tasks ...use) {
	s.delegates(tasks...)
	s.start()
	s.says("delegate it")
	s.hears("started server-side task")
	s.sees("It runs in the background")
}

// panel opens the panel of the only task, from the prompt.
func (s *stage) panel() {
	s.sees(`1 MCP task .*↓ to manage`)
	s.press("Down")
	s.press("Enter")
}

// taskQuick ends before it is worth a task.
func taskQuick(s *stage) {
	s.codex.Add(providertest.Say("Codex ends: at once"))
	s.delegates(s.task("say something"))
	s.start()
	s.says("delegate it")
	s.hears("Codex ends: at once")
	s.wire(wire.modern, has(0, "tasks", created), has(1, "calls", sent("tools/call")))
}

func taskAccept(s *stage) {
	turns := touch("made")
	thinking := make(chan struct{})
	turns[0].Wait = thinking
	s.codex.Add(turns...)
	s.background(s.task("make the file"))
	s.panel()
	s.sees(`Status:\s+working`)
	s.press("Escape")
	s.sees(`(?m)^❯`)
	close(thinking)
	s.accepts(asksToTouch("made"))
	s.hears("<task-notification>", "Codex ends:", "<status>completed</status>")
	s.made("made", true)
	s.wire(wire.modern, has(1, "tasks", created), has(0, "rounds", rounds), answers(1, "accept"), has(1, "updates", sent("tasks/update")))
}

func taskDecline(s *stage) {
	s.codex.Add(touch("made")...)
	s.background(s.task("make the file"))
	s.declines(asksToTouch("made"))
	s.hears("<task-notification>", "Codex ends:", "declined")
	s.made("made", false)
	s.wire(wire.modern, has(1, "tasks", created), answers(1, "decline"))
}

// taskLater puts a question off and takes it up again in the panel.
func taskLater(s *stage) {
	s.codex.Add(touch("made")...)
	s.background(s.task("make the file"))
	s.sees(asksToTouch("made"))
	s.leaves(asksToTouch("made"), "Escape")
	s.panel()
	s.sees(`Status:\s+input required · waiting for approval`)
	s.press("Enter")
	s.accepts(asksToTouch("made"))
	s.hears("<task-notification>", "Codex ends:")
	s.made("made", true)
	s.wire(wire.modern, has(1, "tasks", created), answers(1, "accept"), answers(0, "cancel"))
}

func taskTwelve(s *stage) {
	s.codex.Add(touchTwelve()...)
	s.background(s.task("make the files"))
	s.acceptsTwelve()
	s.wire(wire.modern, has(1, "tasks", created), answers(twelve, "accept"))
}

func taskTwo(s *stage) {
	for _, name := range []string{"first", "second"} {
		for _, turn := range touch(name) {
			turn.Match = "make the " + name + " file"
			if turn.Func != nil {
				turn.Func = func(providertest.Request) providertest.Turn { return providertest.Say("Codex ends the " + name) }
			}
			s.codex.Add(turn)
		}
	}
	s.background(s.task("make the first file"), s.task("make the second file"))
	// Which of them asks first is chance.
	for range 2 {
		screen := s.sees(asksToTouch("(first|second)"))
		name := "first"
		if strings.Contains(screen, "touch second") {
			name = "second"
		}
		s.accepts(asksToTouch(name))
	}
	s.hears("<task-notification>", "Codex ends the first")
	s.hears("<task-notification>", "Codex ends the second")
	s.made("first", true)
	s.made("second", true)
	s.wire(wire.modern, has(2, "tasks", created), answers(2, "accept"))
}

// runs has a task run a command that does not end by itself.
func (s *stage) runs() (pid int) {
	s.codex.Add(sleep)
	s.background(s.task("wait"))
	s.accepts("Allow Codex to run")
	return s.process()
}

func taskStop(s *stage) {
	pid := s.runs()
	s.claude.script(line{heard: "stop it", stops: true})
	s.says("stop it")
	s.hears("is stopped")
	s.ends(pid)
	s.wire(wire.modern, has(1, "tasks", created))
}

// continues waits for the end of the session and of the command, and continues the
// session, which informs the model how the task ended.
func (s *stage) continues(pid int) {
	s.quit()
	s.ends(pid)
	s.start("--continue")
	s.hears("<task-notification>", "<status>failed</status>")
	s.sees("(?s)MCP task .* failed.*Noted")
	s.wire(wire.modern, has(1, "tasks", created), has(0, "cancellations", sent("tasks/cancel")))
}

// taskExit leaves in the ordinary way while a task runs.
func taskExit(s *stage) {
	pid := s.runs()
	s.says("/exit")
	s.sees("Background work is running")
	s.leaves("Background work is running", "Enter")
	s.ends(pid)
	s.continues(pid)
	s.hears("<task-notification>", "codex-reply")
}

// taskHangup closes the terminal.
func taskHangup(s *stage) {
	s.continues(s.runs())
	s.hears("<task-notification>", "codex-reply")
}

// taskKilled kills Claude Code and the server, which can write nothing then.
func taskKilled(s *stage) {
	pid := s.runs()
	s.do(s.terminal.kill)
	s.continues(pid)
	s.hears("<task-notification>", "codex-reply")
}

func created(m message) bool { return m.fromServer && m.Result.Type == "task" }
