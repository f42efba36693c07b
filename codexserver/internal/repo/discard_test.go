package repo_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
)

func TestDiscard(t *testing.T) {
	t.Parallel()
	type set = map[string]string
	b := newBench(t)
	b.commit(set{"a": "one\n", ".gitignore": "*.o\ncache\n", ".gitattributes": "*.dat filter=lfs\n"})
	for _, tt := range []struct {
		name string
		// work changes the worktree. It returns words that the loss must contain, or nil
		// for no loss.
		work func(b *bench, w *repo.Worktree) []string
		// tokens has others than the loss's refused, which does not depend on what is lost.
		tokens bool
	}{
		{name: "nothing", work: func(*bench, *repo.Worktree) []string { return nil }},
		{name: "a changed file", work: func(b *bench, w *repo.Worktree) []string {
			lay(b.t, w.Path(), set{"a": "x"})
			return []string{"a"}
		}, tokens: true},
		{name: "an untracked file", work: func(b *bench, w *repo.Worktree) []string {
			lay(b.t, w.Path(), set{"s/new": "x"})
			return []string{"s/new"}
		}},
		{name: "an ignored file", work: func(b *bench, w *repo.Worktree) []string {
			lay(b.t, w.Path(), set{"x.o": "x"})
			return nil
		}},
		{name: "a folder that nobody may write", work: func(b *bench, w *repo.Worktree) []string {
			lay(b.t, w.Path(), set{"cache/d/x": "x"})
			b.must(os.Chmod(filepath.Join(w.Path(), "cache", "d"), 0o500))
			return nil
		}},
		{name: "a repository in it", work: func(b *bench, w *repo.Worktree) []string {
			lay(b.t, w.Path(), set{"nested/x": "x"})
			b.gitIn(w.Path(), "init", "-q", "nested")
			return []string{"nested"}
		}},
		{name: "a file that needs a filter", work: func(b *bench, w *repo.Worktree) []string {
			lay(b.t, w.Path(), set{"x.dat": "x"})
			return []string{"x.dat"}
		}},
		{name: "a commit on no branch", work: func(b *bench, w *repo.Worktree) []string {
			lay(b.t, w.Path(), set{"a": "x"})
			b.gitIn(w.Path(), "commit", "-qam", "work")
			b.must(b.plan(w).Apply(b.t.Context()))
			return []string{"work"}
		}, tokens: true},
		{name: "a commit on a branch", work: func(b *bench, w *repo.Worktree) []string {
			b.gitIn(w.Path(), "switch", "-qc", "theirs")
			lay(b.t, w.Path(), set{"a": "x"})
			b.gitIn(w.Path(), "commit", "-qam", "work")
			b.must(b.plan(w).Apply(b.t.Context()))
			return nil
		}},
		{name: "work on a branch that was asked for", work: func(b *bench, w *repo.Worktree) []string {
			lay(b.t, w.Path(), set{"a": "x", "b": "y"})
			_, err := w.Branch(b.t.Context(), repo.BranchOptions{})
			b.must(err)
			return nil
		}},
		{name: "a commit that a branch has that was asked for", work: func(b *bench, w *repo.Worktree) []string {
			lay(b.t, w.Path(), set{"a": "x"})
			b.gitIn(w.Path(), "commit", "-qam", "work")
			_, err := w.Branch(b.t.Context(), repo.BranchOptions{})
			b.must(err)
			return nil
		}},
		{name: "applied, then changed again", work: func(b *bench, w *repo.Worktree) []string {
			lay(b.t, w.Path(), set{"a": "x"})
			b.must(b.plan(w).Apply(b.t.Context()))
			lay(b.t, w.Path(), set{"a": "y"})
			return []string{"a"}
		}},
		{name: "the repository is gone", work: func(b *bench, w *repo.Worktree) []string {
			lay(b.t, w.Path(), set{"a": "x"})
			b.must(os.RemoveAll(b.dir))
			return []string{"cannot be determined"}
		}, tokens: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := b.in(t)
			w := b.create(repo.CreateOptions{ThreadID: "t"})
			want := tt.work(b, w)
			err := w.Discard(t.Context(), "")
			if want != nil {
				var loss *repo.LossError
				if !errors.As(err, &loss) {
					t.Fatalf("%v", err)
				}
				if !exists(w.Path()) {
					t.Fatal("it is gone")
				}
				said := []string{loss.Error()}
				said = append(said, loss.Commits...)
				if loss.Status != nil {
					for _, f := range loss.Status.Files {
						said = append(said, f.Path)
					}
					for _, s := range loss.Status.Skipped {
						said = append(said, s.Path)
					}
				}
				for _, word := range want {
					if !strings.Contains(strings.Join(said, "\n"), word) {
						t.Errorf("%q does not name %s", said, word)
					}
				}
				if tt.tokens {
					if err := w.Discard(t.Context(), "wrong"); !errors.As(err, &loss) {
						t.Fatalf("with a wrong token: %v", err)
					}
				}
				if tt.tokens && loss.Unknown == "" {
					// Another change needs another token.
					lay(t, w.Path(), set{"more": "x"})
					var second *repo.LossError
					if err := w.Discard(t.Context(), loss.Token); !errors.As(err, &second) || second.Token == loss.Token {
						t.Fatalf("with an old token: %v", err)
					}
					loss = second
				}
				err = w.Discard(t.Context(), loss.Token)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{filepath.Dir(w.Path()), filepath.Join(b.store.Records, w.ID()), filepath.Join(b.dir, ".git", "worktrees")} {
				if exists(path) {
					t.Errorf("%s is left", path)
				}
			}
			if _, err := b.store.Find("t"); err == nil {
				t.Error("it is found")
			}
			if err := w.Discard(t.Context(), ""); err == nil {
				t.Error("discarded twice")
			}
		})
	}
}

// TestDiscardOfSkippedFile changes a file whose content nobody compares, after the loss was shown.
func TestDiscardOfSkippedFile(t *testing.T) {
	b := newBench(t)
	b.commit(map[string]string{".gitattributes": "*.dat filter=lfs\n"})
	w := b.create(repo.CreateOptions{ThreadID: "t"})
	token := ""
	for _, text := range []string{"x", "longer"} {
		lay(t, w.Path(), map[string]string{"x.dat": text})
		var loss *repo.LossError
		if err := w.Discard(t.Context(), token); !errors.As(err, &loss) || loss.Token == token || len(loss.Status.Skipped) != 1 {
			t.Fatalf("with %q: %v", text, err)
		}
		token = loss.Token
	}
	if err := w.Discard(t.Context(), token); err != nil {
		t.Error(err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
