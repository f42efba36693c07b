package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// agentOf is the variable with the model's address that makes this program an agent.
const agentOf = "TASKS_TEST_AGENT_OF"

func asAgent(url string) int {
	dir, err := os.Getwd()
	if err == nil {
		o := &options{baseURL: url, model: "any", wire: "chat"}
		_, err = turn(context.Background(), o, os.Environ(), os.Getenv("HOME"), dir, os.Args[1], &host{})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Both agents are this program. One of them does nothing in the second case.
func TestBeside(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the memory is read from /proc")
	}
	self := codexMCP("")
	self.command = func(_, _, baseURL, prompt string) *exec.Cmd {
		cmd := exec.Command(os.Args[0], prompt)
		cmd.Env = []string{agentOf + "=" + baseURL}
		return cmd
	}
	idle := self
	idle.name = "idle"
	idle.command = func(_, _, baseURL, prompt string) *exec.Cmd { return exec.Command("sleep", "0.2") }
	tasks, err := load("move")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	other := self
	other.name = "other"
	if err := beside(t.Context(), tasks, [2]agent{self, other}, &out); err != nil {
		t.Fatal(err)
	}
	// ls, three files read, three written, one removed, the answer
	if want := fmt.Sprintf("%-37s %10d %10d %6.2f\n", "requests, all tasks", 9, 9, 1.0); !strings.Contains(out.String(), want) {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	if err := beside(t.Context(), tasks, [2]agent{self, idle}, &out); err == nil || !strings.Contains(err.Error(), "move of idle") {
		t.Errorf("an agent that does nothing: %v", err)
	}
}

// What a solution adds, changes and removes is found, and the tests of the task are not.
func TestChanges(t *testing.T) {
	tasks, err := load("move")
	if err != nil {
		t.Fatal(err)
	}
	changes, err := tasks[0].changes(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range changes {
		got = append(got, fmt.Sprint(filepath.ToSlash(c.path), " ", c.before, " ", c.content != ""))
	}
	want := "internal/text/text.go false true, menu/menu.go true true, page/page.go true true, util/util.go true false"
	if strings.Join(got, ", ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
