package rollout_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/google/go-cmp/cmp"
)

// load returns the texts of the items in the file of a writer.
func load(t *testing.T, w *rollout.Writer) (texts []string) {
	t.Helper()
	r, err := rollout.Load(w.Path())
	if err != nil {
		t.Fatal(err)
	}
	if r.Skipped != 0 {
		t.Errorf("%d lines cannot be read", r.Skipped)
	}
	for _, item := range r.Items {
		texts = append(texts, item.(protocol.MessageItem).Content[0].Text)
	}
	return texts
}

// TestMissedLines makes the file unwritable for a time: the lines are written with the next one, or at the end.
func TestMissedLines(t *testing.T) {
	for _, then := range []string{"another line", "the end"} {
		t.Run(then, func(t *testing.T) {
			testenv.NeedsUnix(t, testenv.OpenFiles)
			w := create(t)
			if err := w.Item(userMessage("before")); err != nil {
				t.Fatal(err)
			}
			aside := w.Path() + ".aside"
			if err := errors.Join(os.Rename(w.Path(), aside), os.Mkdir(w.Path(), 0o700)); err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				if err := w.Item(userMessage(fmt.Sprint("missed ", i))); err == nil {
					t.Error("a folder was written to")
				}
			}
			if err := errors.Join(os.Remove(w.Path()), os.Rename(aside, w.Path())); err != nil {
				t.Fatal(err)
			}
			want := []string{"before", "missed 0", "missed 1", "missed 2", "after"}
			switch then {
			case "another line":
				if err := errors.Join(w.Item(userMessage("after")), w.Check()); err != nil {
					t.Error(err)
				}
			case "the end":
				want = want[:4]
				if err := w.Close(); err != nil {
					t.Error(err)
				}
			}
			if d := cmp.Diff(want, load(t, w)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(path string) error
		want error
	}{
		"nothing":  {func(string) error { return nil }, nil},
		"removed":  {os.Remove, rollout.ErrGone},
		"emptied":  {func(path string) error { return os.Truncate(path, 0) }, rollout.ErrGone},
		"cut":      {func(path string) error { return os.Truncate(path, 10) }, rollout.ErrGone},
		"appended": {appendLine, rollout.ErrChanged},
		"replaced": {replace, rollout.ErrChanged},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "removed" || name == "replaced" {
				testenv.NeedsUnix(t, testenv.OpenFiles)
			}
			w := create(t)
			if err := errors.Join(w.Item(userMessage("one")), tt.do(w.Path())); err != nil {
				t.Fatal(err)
			}
			if err := w.Check(); !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				t.Fatalf("Check: %v, want %v", err, tt.want)
			}
			err := w.Item(userMessage("two"))
			if errors.Is(tt.want, rollout.ErrGone) != errors.Is(err, rollout.ErrGone) {
				t.Errorf("Item: %v", err)
			}
			if err := w.Check(); !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				t.Errorf("Check after a write: %v, want %v", err, tt.want)
			}
		})
	}
}

func appendLine(path string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("{}\n")
	return errors.Join(err, f.Close())
}

func replace(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(path+".new", data, 0o600), os.Rename(path+".new", path))
}
