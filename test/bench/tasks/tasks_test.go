package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/internal/nightly"
)

func TestMain(m *testing.M) {
	native.Main() // does not return if the engine started this process to run commands
	os.Exit(m.Run())
}

// Each task fails at the beginning and after its wrong solution, and passes after its solution.
// The engine applies both like a patch of a model. The modules are dependencies of this one, so
// that they are in Go's cache where the tests were built.
func TestTasks(t *testing.T) {
	tasks, err := load("")
	if err != nil {
		t.Fatal(err)
	}
	real := 0
	for i, task := range tasks {
		if task.module.path != "" {
			real++
		}
		if i%4 > 0 && !nightly.Tests() { // each compiles a module three times
			continue
		}
		t.Run(task.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := task.lay(t.Context(), dir); err != nil {
				t.Fatal(err)
			}
			if err := task.judge(t.Context(), dir); err == nil {
				t.Error("the tests pass although nothing was done")
			}
			play := func(o options) (passed int, told string) {
				o.task, o.verbose, o.timeout = task.name, true, 5*time.Minute
				var out strings.Builder
				passed, all, err := measure(t.Context(), &o, &out)
				if err != nil || all != 1 {
					t.Errorf("%d tasks ran: %v", all, err)
				}
				return passed, out.String()
			}
			if passed, told := play(options{scripted: true}); passed != 1 || !strings.Contains(told, "patches:") {
				t.Errorf("the solution does not pass:\n%s", told)
			}
			passed, told := play(options{wrong: true})
			if passed != 0 || !strings.Contains(told, "FAIL "+task.name) || !strings.Contains(told, "patches:") {
				t.Errorf("the wrong solution passes, or was not tried:\n%s", told)
			}
		})
	}
	if len(tasks) != 12 || real < 8 {
		t.Errorf("%d tasks, %d in real modules; want 12 and at least 8", len(tasks), real)
	}
}

func TestMeasureWantsAModel(t *testing.T) {
	if _, _, err := measure(t.Context(), &options{}, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "-model") {
		t.Errorf("measure: %v", err)
	}
	if _, _, err := measure(t.Context(), &options{task: "nosuch"}, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("measure: %v", err)
	}
}

// A module with other bytes than the pinned ones is refused.
func TestModuleWithAnotherSum(t *testing.T) {
	tasks, err := load("uuid")
	if err != nil {
		t.Fatal(err)
	}
	m := tasks[0].module
	m.sum = "h1:0000000000000000000000000000000000000000000="
	if _, err := m.download(t.Context()); err == nil || !strings.Contains(err.Error(), "has the sum "+tasks[0].module.sum) {
		t.Errorf("download: %v", err)
	}
}
