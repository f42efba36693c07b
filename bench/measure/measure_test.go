package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native"
)

func TestMain(m *testing.M) {
	native.Main() // does not return if the engine started this process to run commands
	os.Exit(m.Run())
}

// Each task fails without its solution and passes with it. The engine applies the solution
// like a patch of a model.
func TestTasks(t *testing.T) {
	tasks, err := load("")
	if err != nil {
		t.Fatal(err)
	}
	if len(tasks) < 12 {
		t.Errorf("%d tasks, want a dozen", len(tasks))
	}
	for _, task := range tasks {
		t.Run(task.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := write(dir, task.repository); err != nil {
				t.Fatal(err)
			}
			if err := task.judge(t.Context(), dir); err == nil {
				t.Error("the tests pass although nothing was done")
			}
			var out strings.Builder
			passed, all, err := measure(t.Context(), &options{task: task.name, scripted: true, verbose: true, timeout: 5 * time.Minute}, &out)
			if err != nil || passed != 1 || all != 1 {
				t.Errorf("the solution does not pass: %v\n%s", err, out.String())
			}
		})
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
