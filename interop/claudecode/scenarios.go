package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// scenario is a story and what must hold in it.
type scenario struct {
	name string
	play func(*stage)
}

var scenarios = []scenario{
	{"legacy/accept", legacyAccept},
	{"legacy/decline", legacyDecline},
	{"print/cancel", printCancel},
	{"print/hook", printHook},
	{"print/background", printBackground},
	{"rounds/accept", roundsAccept},
	{"rounds/decline", roundsDecline},
	{"rounds/escape", roundsEscape},
	{"rounds/interrupt", roundsInterrupt},
	{"rounds/twelve", roundsTwelve},
	{"rounds/secrets", roundsSecrets},
	{"task/quick", taskQuick},
	{"task/accept", taskAccept},
	{"task/decline", taskDecline},
	{"task/later", taskLater},
	{"task/twelve", taskTwelve},
	{"task/two", taskTwo},
	{"task/stop", taskStop},
	{"task/exit", taskExit},
	{"task/hangup", taskHangup},
	{"task/killed", taskKilled},
	{"result/legacy", resultLegacy},
	{"result/legacy-aborted", resultLegacyAborted},
	{"result/rounds", resultRounds},
	{"result/rounds-aborted", resultRoundsAborted},
	{"result/task", resultTask},
	{"result/task-failed", resultTaskFailed},
}

// task is a call of the tool codex that asks before each command.
func (s *stage) task(prompt string) use {
	return use{tool: "mcp__codex__codex", input: object{
		"prompt": prompt, "cwd": s.cwd, "approval-policy": "untrusted", "sandbox": "workspace-write",
	}}
}

// delegates has the model hand over tasks when it hears "delegate it", and say
// that they run when they became tasks of the server.
func (s *stage) delegates(tasks ...use) {
	s.claude.script(
		line{heard: "delegate it", calls: tasks},
		line{heard: "started server-side task", says: "It runs in the background."})
}

// touch is a turn of Codex's model that makes a file, and then one that repeats
// what the command's end was.
func touch(file string) []providertest.Turn {
	return []providertest.Turn{
		providertest.Call(providertest.Shell("call_"+file, "touch", file)),
		{Func: func(r providertest.Request) providertest.Turn {
			return providertest.Say(fmt.Sprintf("Codex ends: %s", r.LastToolOutput()))
		}},
	}
}

// twelve is how many commands need an approval where many do: more than the ten rounds
// after which Claude Code gives up a call.
const twelve = 12

func file(i int) string { return fmt.Sprintf("made-%02d", i) }

// touchTwelve is the turn that makes that many files.
func touchTwelve() (turns []providertest.Turn) {
	for i := range twelve {
		turns = append(turns, touch(file(i))[0])
	}
	return append(turns, providertest.Say("Codex ends: twelve files"))
}

// acceptsTwelve accepts each command in its turn.
func (s *stage) acceptsTwelve() {
	for i := range twelve {
		s.accepts(asksToTouch(file(i)))
	}
	s.hears("Codex ends: twelve files")
	for i := range twelve {
		s.made(file(i), true)
	}
}

// sleep is the turn that runs a command that does not end by itself.
var sleep = providertest.Call(providertest.Tool("call_sleep", "shell", object{
	"command": []string{"sh", "-c", "echo $$ >pid; exec sleep 600"}, "timeout_ms": 600_000,
}))

// process waits until that command runs, and is the id of its process.
func (s *stage) process() (pid int) {
	s.until("process of the command", func() bool {
		text, err := os.ReadFile(filepath.Join(s.cwd, "pid"))
		if err != nil {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil
	})
	return pid
}

// ends waits until there is no such process.
func (s *stage) ends(pid int) {
	s.until("end of the command", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
}

// asksToTouch is the question on the screen.
func asksToTouch(file string) string { return "Allow Codex to run `touch " + file + "`" }

// wire checks the trace.
func (s *stage) wire(checks ...func(wire) error) {
	w := s.trace()
	for _, check := range checks {
		s.do(func() error { return check(w) })
	}
}

// has checks how many messages match.
func has(n int, what string, is func(message) bool) func(wire) error {
	return func(w wire) error {
		if got := w.count(is); got != n {
			return fmt.Errorf("%d messages are %s, want %d", got, what, n)
		}
		return nil
	}
}

// answers checks how Claude Code answered.
func answers(n int, action string) func(wire) error {
	return func(w wire) error {
		if got := w.answered(action); got != n {
			return fmt.Errorf("%d answers are %s, want %d", got, action, n)
		}
		return nil
	}
}
