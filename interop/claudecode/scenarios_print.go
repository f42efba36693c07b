package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// print runs claude -p, whose model hands over a task.
func (s *stage) print(task use) {
	s.delegates(task)
	s.codex.Add(touch("made")...)
	s.do(func() error {
		cmd := exec.CommandContext(s.ctx, s.programs.claude, "-p", "delegate it")
		cmd.Dir, cmd.Env = s.cwd, s.environment()
		said, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("claude -p: %w\n%s", err, said)
		}
		return os.WriteFile(filepath.Join(s.out, "print.txt"), said, 0o600)
	})
}

// hook has a program of the user's accept every question. It keeps the last one.
func (s *stage) hook() (question string) {
	hook, question := filepath.Join(s.temp, "hook"), filepath.Join(s.out, "hook.json")
	s.do(func() error {
		return os.WriteFile(hook, []byte(`#!/bin/sh
cat >'`+question+`'
echo '{"hookSpecificOutput":{"hookEventName":"Elicitation","action":"accept","content":{}}}'
`), 0o700)
	})
	s.do(func() error {
		return s.settings(object{"Elicitation": []object{{"hooks": []object{{"type": "command", "command": hook}}}}})
	})
	return question
}

// printCancel cannot ask a person: Claude Code cancels by itself.
func printCancel(s *stage) {
	s.print(s.task("make the file"))
	s.hears("aborted")
	s.made("made", false)
	s.wire(wire.modern, has(1, "rounds", rounds), answers(1, "cancel"))
}

func printHook(s *stage) {
	question := s.hook()
	s.print(s.task("make the file"))
	s.hears("Codex ends:")
	s.made("made", true)
	s.do(func() error {
		told, err := os.ReadFile(question)
		if err == nil && !strings.Contains(string(told), asksToTouch("made")) {
			err = fmt.Errorf("the hook received %s", told)
		}
		return err
	})
	s.wire(wire.modern, has(1, "rounds", rounds), answers(1, "accept"))
}

// printBackground is answered at once; the question and the result come with
// codex-wait.
func printBackground(s *stage) {
	s.hook()
	s.claude.script(line{heard: `"status":"running"`, waits: true})
	task := s.task("make the file")
	task.input["background"] = true
	s.print(task)
	s.hears("Codex ends:", `"status":"completed"`)
	s.made("made", true)
	s.wire(wire.modern, has(1, "rounds", rounds), answers(1, "accept"))
}
