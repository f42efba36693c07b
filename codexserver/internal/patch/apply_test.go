//go:build unix

package patch_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
)

// TestApplyIsWhole checks that a patch whose last file fails changes nothing, whether Apply
// notices before it writes or when it has written all others.
func TestApplyIsWhole(t *testing.T) {
	for name, tt := range map[string]struct{ last, obstacle string }{
		"before": {"last/file", "last"}, // it appears after the plan
		"after":  {last: "new/deep/" + strings.Repeat("x", 300)},
	} {
		t.Run(name, func(t *testing.T) { applyIsWhole(t, tt.last, tt.obstacle) })
	}
}

func applyIsWhole(t *testing.T, last, obstacle string) {
	dir := t.TempDir()
	files := map[string]string{"a.txt": "one\n", "del.txt": "bye\n", "from.txt": "x\n", "target": "t\n"}
	writeTree(t, dir, files)
	must.OK(t, os.Symlink("target", filepath.Join(dir, "link")), os.Chmod(filepath.Join(dir, "del.txt"), 0o600))
	p := plan(t, dir, strings.Join([]string{
		"*** Update File: a.txt", "@@", "-one", "+1", "*** Add File: new/deep/file", "+x", "*** Delete File: del.txt", "*** Delete File: link",
		"*** Update File: from.txt", "*** Move to: moved/to.txt", "@@", "-x", "+y", "*** Add File: " + last, "+x",
	}, "\n"))
	if obstacle != "" {
		files[obstacle] = "f\n"
		writeTree(t, dir, map[string]string{obstacle: "f\n"})
	}
	first, second := p.Apply(), p.Apply() // the second finds what the first has restored
	if first == nil || second == nil || first.Error() != second.Error() || strings.Contains(first.Error(), "put back") {
		t.Fatalf("a file that cannot be written: %v, then %v", first, second)
	}
	files["link"] = "t\n"
	must.Equal(t, "tree", files, readTree(t, dir, dir))
	for _, gone := range []string{"new", "moved"} {
		if _, err := os.Stat(filepath.Join(dir, gone)); !os.IsNotExist(err) {
			t.Errorf("%s: %v", gone, err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "del.txt")); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if to, err := os.Readlink(filepath.Join(dir, "link")); err != nil || to != "target" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
}

// TestApplyAfterChange changes files between the plan and its use. Nothing is written if one is not
// what the question showed: another file, another content, or a name more that a write changes too.
func TestApplyAfterChange(t *testing.T) {
	const update, remove = "*** Update File: b.txt\n@@\n-x\n+y\n*** Update File: a.txt\n@@\n-one\n+1", "*** Update File: b.txt\n@@\n-x\n+y\n*** Delete File: "
	again := func(path string) error { // another file with the same content
		return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, []byte("one\n"), 0o600))
	}
	relink := func(path, to string) error { return errors.Join(os.Remove(path), os.Symlink(to, path)) }
	type row struct {
		text    string
		change  func() error
		applied bool
	}
	rows := map[string]row{
		"other content":           {text: update, change: func() error { return os.WriteFile("a.txt", []byte("one\nmore\n"), 0o600) }},
		"another file":            {text: update, change: func() error { return again("a.txt") }},
		"no file":                 {text: update, change: func() error { return os.Remove("a.txt") }},
		"a folder":                {text: update, change: func() error { return errors.Join(os.Remove("a.txt"), os.Mkdir("a.txt", 0o700)) }},
		"a link":                  {text: update, change: func() error { return relink("a.txt", "b.txt") }},
		"too long":                {text: update, change: func() error { return os.Truncate("a.txt", 64<<20+1) }},
		"another name":            {text: update, change: func() error { return os.Link("a.txt", "c.txt") }},
		"one name more":           {"*** Update File: linked.txt\n@@\n-x\n+y", func() error { return os.Link("linked.txt", "c.txt") }, true},
		"in one new folder":       {"*** Add File: new/deep/x\n+x\n*** Add File: new/deep/y\n+y", func() error { return nil }, true},
		"a new file":              {text: "*** Add File: new\n+x", change: func() error { return os.WriteFile("new", nil, 0o600) }},
		"a new folder":            {text: "*** Add File: new/x\n+x", change: func() error { return os.Mkdir("new", 0o700) }},
		"removed":                 {text: remove + "a.txt", change: func() error { return os.Remove("a.txt") }},
		"removed, other content":  {text: remove + "a.txt", change: func() error { return os.WriteFile("a.txt", nil, 0o600) }},
		"removed, another name":   {remove + "a.txt", func() error { return os.Link("a.txt", "c.txt") }, true},
		"removed, a link":         {remove + "link", func() error { return nil }, true},
		"removed, another link":   {text: remove + "link", change: func() error { return relink("link", "./a.txt") }},
		"removed, no link":        {text: remove + "link", change: func() error { return os.Remove("link") }},
		"removed, a link's file":  {text: remove + "link", change: func() error { return again("a.txt") }},
		"what stays, other names": {"*** Update File: a.txt\n@@\n-one\n+one", func() error { return os.Link("a.txt", "c.txt") }, true},
		"a new link":              {text: "*** Add File: new\n+x", change: func() error { return os.Symlink("a.txt", "new") }},
		"a new link to nothing":   {text: "*** Add File: new\n+x", change: func() error { return os.Symlink("none", "new") }},
		"a new link to a folder":  {text: "*** Add File: new/deep/x\n+x", change: func() error { return os.Symlink("folder", "new") }},
		"removed, became a link":  {text: remove + "a.txt", change: func() error { return relink("a.txt", "b.txt") }},
	}
	for name, text := range map[string]string{"added": "*** Add File: folder/new\n+x", "changed": "*** Update File: folder/file\n@@\n-one\n+two", "removed": remove + "folder/file"} {
		for where, change := range map[string]func() error{
			"another folder": func() error {
				return errors.Join(os.Mkdir("folder", 0o700), os.WriteFile("folder/file", []byte("one\n"), 0o600))
			},
			"a link to the folder": func() error { return os.Symlink("gone", "folder") },
			"a circle of links":    func() error { return os.Symlink("folder", "folder") },
			"no folder":            func() error { return nil },
		} {
			rows[name+" in "+where] = row{text: text, change: func() error { return errors.Join(os.Rename("folder", "gone"), change()) }}
		}
	}
	for name, tt := range rows {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			dir, err := os.Getwd()
			must.OK(t, err)
			writeTree(t, dir, map[string]string{"a.txt": "one\n", "b.txt": "x\n", "linked.txt": "x\n", "folder/file": "one\n"})
			err = os.Link("linked.txt", "other.txt")
			if strings.HasSuffix(tt.text, "link") {
				err = errors.Join(err, os.Symlink("a.txt", "link"))
			}
			p := plan(t, dir, tt.text)
			must.OK(t, err, tt.change())
			before := readTree(t, dir, dir)
			err = p.Apply()
			named := err != nil && strings.HasPrefix(err.Error(), dir) && strings.HasSuffix(err.Error(), "read it again")
			if (err == nil) != tt.applied || err != nil && !named && !strings.HasSuffix(name, "a circle of links") {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(before, readTree(t, dir, dir)); err != nil && diff != "" {
				t.Errorf("tree (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEdit checks plans of a function that changes a file: what it returns is written, and
// nothing if it is the same or if it fails.
func TestEdit(t *testing.T) {
	failed := errors.New("failed")
	for name, tt := range map[string]struct {
		path, after, summary string
		err                  error
		want                 map[string]string
	}{
		"a new file": {"new", "x\n", "A new\n", nil, map[string]string{"a.txt": "one\n", "new": "x\n"}},
		"a file":     {"a.txt", "x\n", "M a.txt\n", nil, map[string]string{"a.txt": "x\n"}},
		"the same":   {"a.txt", "one\n", "", nil, map[string]string{"a.txt": "one\n"}},
		"an error":   {"a.txt", "x\n", "", failed, map[string]string{"a.txt": "one\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeTree(t, dir, map[string]string{"a.txt": "one\n"})
			p, err := patch.Edit(patch.Folder{Path: dir}, dir, tt.path, func(before *string) (string, error) {
				if (before == nil) != (tt.path == "new") || before != nil && *before != "one\n" {
					t.Errorf("it gets %v", before)
				}
				return tt.after, tt.err
			})
			if !errors.Is(err, tt.err) {
				t.Fatal(err)
			}
			if err == nil {
				must.Equal(t, "the summary", "Success. Updated the following files:\n"+tt.summary, p.Summary())
				if add := p.Changes()[filepath.Join(dir, "new")].Add; (add != nil) != (tt.path == "new") {
					t.Errorf("changes %v", p.Changes())
				}
				must.Check(t, p.Apply())
			}
			must.Equal(t, "tree", tt.want, readTree(t, dir, dir))
		})
	}
}

// TestPlanRefuses has patches of what is no regular text file, and of one file by two names.
func TestPlanRefuses(t *testing.T) {
	for _, text := range []string{
		"*** Update File: a.txt\n@@\n-one\n+two\n*** Update File: link\n@@\n-one\n+three",
		"*** Update File: /dev/zero\n@@\n-x\n+y", "*** Delete File: /dev/null", "*** Update File: .\n@@\n-x\n+y",
		"*** Add File: a\x00b\n+x", "*** Add File: ~/a\n+x", "*** Add File: ~\n+x",
		"*** Add File: ~user/a\n+x", "*** Add File: $HOME/a\n+x", "*** Add File: $HOME\n+x", "*** Add File: ${HOME}/a\n+x", "*** Add File: $(pwd)/a\n+x", "*** Add File: `pwd`/a\n+x",
		"*** Add File: %USERPROFILE%/a\n+x", "*** Add File: /home/$USER/a\n+x", "*** Add File: /home/${USER}/a\n+x", "*** Update File: a.txt\n*** Move to: $HOME/a\n@@\n-one\n+two",
		"*** Add File: file:///a\n+x", "*** Add File: file:a\n+x", "*** Add File: FILE://localhost/a\n+x", "*** Add File: https://example.com/a\n+x", "*** Add File: vscode-remote://a\n+x", "*** Update File: a.txt\n*** Move to: ~/a\n@@\n-one\n+two", "*** Update File: binary\n@@\n-x\n+y", "*** Delete File: /proc/self/environ",
	} {
		dir := t.TempDir()
		writeTree(t, dir, map[string]string{"binary": "x\n\xff\n", "a.txt": "one\n"})
		must.OK(t, os.Symlink("a.txt", filepath.Join(dir, "link")))
		if _, err := planOf(dir, text); err == nil {
			t.Errorf("%q was planned", text)
		}
	}
	for _, text := range []string{
		"*** Add File: ./~/a\n+x", "*** Add File: ~a\n+x", "*** Add File: b/~/a\n+x", "*** Add File: ./$HOME/a\n+x", "*** Add File: $OUT/a\n+x", "*** Add File: ~old/a\n+x",
		"*** Add File: $postId/a\n+x", "*** Add File: routes/$ID/a\n+x", "*** Add File: ~$doc.docx\n+x", "*** Add File: 100%/a\n+x", "*** Add File: ./file:a\n+x", "*** Add File: a:b\n+x", "*** Add File: $\n+x",
	} {
		dir := t.TempDir()
		writeTree(t, dir, map[string]string{"$OUT/b": "x\n", "~old/b": "x\n"})
		if _, err := planOf(dir, text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestWithin(t *testing.T) {
	top := t.TempDir()
	work, outside := filepath.Join(top, "work"), filepath.Join(top, "outside")
	writeTree(t, work, map[string]string{"file": "x\n", "sub/file": "x\n"})
	writeTree(t, outside, map[string]string{"file": "x\n"})
	for name, to := range map[string]string{
		"out": "../outside/file", "dirout": "../outside", "chain": "dirout", "in": "sub/file", "dangling": "../outside/new", "loop": "loop", "up": "..", "sub/back": "../file",
		"absolute": outside + "/file", "dangling2": "../outside/missing/", "subalias": "sub",
	} {
		must.OK(t, os.Symlink(to, filepath.Join(work, name)))
	}
	must.OK(t, os.Symlink(work, filepath.Join(top, "alias")))
	tests := []struct {
		text            string
		within, touches bool // the second: work/sub
	}{
		{"*** Add File: new\n+x", true, false}, {"*** Add File: a/b/new\n+x", true, false}, {"*** Add File: sub/new\n+x", true, true},
		{"*** Add File: ../new\n+x", false, false}, {"*** Add File: sub/../../new\n+x", false, false}, {"*** Add File: ../work/new\n+x", true, false},
		{"*** Add File: " + outside + "/new\n+x", false, false},
		{"*** Add File: " + work + "/new\n+x", true, false},
		{"*** Add File: " + top + "/alias/new\n+x", true, false},
		{"*** Add File: " + top + "/workshop/new\n+x", false, false},
		{"*** Update File: out\n@@\n-x\n+y", false, false}, {"*** Add File: dangling\n+x", false, false},
		{"*** Add File: dirout/new\n+x", false, false}, {"*** Add File: dirout/a/new\n+x", false, false},
		{"*** Add File: chain/new\n+x", false, false},
		{"*** Add File: missing/../../new\n+x", false, false},
		{"*** Add File: ../work-evil/new\n+x", false, false},
		{"*** Update File: file\n*** Move to: dirout/new\n@@\n-x\n+y", false, false},
		{"*** Add File: up/outside/new\n+x", false, false},
		{"*** Update File: absolute\n@@\n-x\n+y", false, false},
		{"*** Add File: dangling2/new\n+x", false, false}, {"*** Add File: file/new\n+x", false, false},
		{"*** Update File: in\n@@\n-x\n+y", true, true},
		{"*** Update File: sub/back\n@@\n-x\n+y", true, false},
		{"*** Delete File: out", true, false}, // the link, not the file
		{"*** Delete File: dirout/file", false, false},
		{"*** Add File: loop/new\n+x", false, true}, // cannot be determined
		{"*** Update File: file\n*** Move to: ../outside/new\n@@\n-x\n+y", false, false},
		{"*** Add File: new\n+x\n*** Add File: ../new\n+x", false, false},
	}
	for _, tt := range tests {
		plan, err := planOf(work, tt.text)
		if err != nil {
			if !tt.within {
				continue // a patch without a plan is not applied
			}
			t.Fatal(err)
		}
		must.Equal(t, fmt.Sprintf("%q lies within", tt.text), tt.within, plan.Within([]string{work}))
		for _, sub := range []string{"sub", "subalias", "subalias/", "sub/../sub"} {
			must.Equal(t, fmt.Sprintf("%q touches %s", tt.text, sub), tt.touches, len(plan.Touched([]string{work + "/" + sub})) > 0)
		}
		for _, root := range []string{work + "/", top + "/alias", top + "/alias/", work + "/sub/.."} {
			must.Equal(t, fmt.Sprintf("%q lies within %s", tt.text, root), tt.within, plan.Within([]string{root}))
		}
		if !plan.Within([]string{"/"}) {
			t.Errorf("%q does not lie within everything", tt.text)
		}
		if plan.Within([]string{filepath.Join(work, "new"), filepath.Join(work, "new/deeper"), filepath.Join(work, "sub/new")}) {
			t.Errorf("%q lies within a folder in its own place", tt.text)
		}
		if plan.Within(nil) || len(plan.Touched(nil)) > 0 && tt.within {
			t.Errorf("%q lies within an empty list", tt.text)
		}
	}
}

// TestModes checks that a file keeps its mode when it changes, also by a link, and when it moves, also over another one.
func TestModes(t *testing.T) {
	const change, move = "*** Update File: f\n@@\n-a\n+A", "*** Update File: f\n*** Move to: "
	for name, tt := range map[string]struct {
		mode   fs.FileMode
		text   string
		want   string
		modeOf fs.FileMode
	}{
		"a program that changes":           {0o755, change, "f", 0o755},
		"a program that changes by a link": {0o755, "*** Update File: link\n@@\n-a\n+A", "f", 0o755},
		"a program that moves":             {0o755, move + "sub/g\n@@\n-a\n+A", "sub/g", 0o755},
		"a program that moves alone":       {0o755, move + "g", "g", 0o755},
		"a secret that moves":              {0o600, move + "g\n@@\n-a\n+A", "g", 0o600},
		"for a group that writes":          {0o775, move + "g", "g", 0o775},
		"a file that nobody writes":        {0o555, move + "g", "g", 0o555},
		"a program that moves over a file": {0o755, move + "there\n@@\n-a\n+A", "there", 0o755},
		"a program that moves twice":       {0o755, move + "g\n*** Update File: g\n*** Move to: h", "h", 0o755},
		"moved away, then made anew":       {0o755, move + "g\n*** Add File: f\n+new", "f", 0o755},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeTree(t, dir, map[string]string{"f": "a\n", "there": "there\n"})
			link := filepath.Join(dir, "link")
			must.OK(t, os.Chmod(filepath.Join(dir, "f"), tt.mode), os.Symlink("f", link), plan(t, dir, tt.text).Apply())
			if to, err := os.Readlink(link); err != nil || to != "f" {
				t.Errorf("the link leads to %q, %v", to, err)
			}
			if info, err := os.Stat(filepath.Join(dir, tt.want)); err != nil || info.Mode().Perm() != tt.modeOf {
				t.Errorf("%v, %v, want %v", info, err, tt.modeOf)
			}
		})
	}
}

// TestApplyInARace replaces folders with links while patches are applied, and checks that nothing is written outside.
func TestApplyInARace(t *testing.T) {
	top := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	work, outside := filepath.Join(top, "work"), filepath.Join(top, "outside")
	writeTree(t, work, map[string]string{"dir/file": "0\n"})
	writeTree(t, outside, map[string]string{"file": "0\n"})
	dir, gone := filepath.Join(work, "dir"), filepath.Join(work, "gone")
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			// Each step may fail, because a patch has made a folder in between.
			_ = os.Rename(dir, gone)
			_ = os.Symlink(outside, dir)
			_ = os.Remove(dir)
			_ = os.Rename(gone, dir)
		}
	})
	applied := 0
	rounds := 150
	if testing.Short() {
		rounds = 50
	}
	for i := range rounds {
		for _, text := range []string{
			"*** Update File: dir/file\n@@\n-0\n+0\n+1", "*** Update File: dir/file\n@@\n-1",
			fmt.Sprintf("*** Add File: dir/new%d\n+x", i), fmt.Sprintf("*** Add File: dir/deep%d/new\n+x", i),
		} {
			plan, err := planOf(work, text)
			if err != nil || !plan.Within([]string{work}) {
				continue
			}
			if plan.Apply() == nil {
				applied++
			}
		}
	}
	close(stop)
	swapping.Wait()
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("outside has %v, %v", entries, err)
	}
	check(t, filepath.Join(outside, "file"), "0\n")
	t.Logf("%d patches were applied", applied)
}
