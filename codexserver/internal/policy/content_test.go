//go:build unix

package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
)

// TestContent changes a file after an approval for the session.
func TestContent(t *testing.T) {
	const offered, changes = "the same", "changed"
	write := func(path, text string) error {
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o700))
	}
	for _, tt := range []struct {
		name   string
		argv   []string
		change func(base string) error
		want   string // "" when no approval for the session is offered
	}{
		{"nothing", []string{"tool", "file", "new"}, func(string) error { return nil }, offered},
		{"content", []string{"tool", "file"}, func(base string) error { return write(base+"/work/file", "other") }, changes},
		{"as much content", []string{"tool", "file"}, func(base string) error { return write(base+"/work/file", "Text") }, changes},
		{"mode", []string{"tool", "file"}, func(base string) error { return os.Chmod(base+"/work/file", 0o600) }, changes},
		{"removed", []string{"tool", "file"}, func(base string) error { return os.Remove(base + "/work/file") }, changes},
		{"appeared", []string{"tool", "new"}, func(base string) error { return write(base+"/work/new", "") }, changes},
		{"became a folder", []string{"tool", "new"}, func(base string) error { return os.Mkdir(base+"/work/new", 0o777) }, ""},
		{"became a link to nothing", []string{"tool", "new"}, func(base string) error { return os.Symlink(base+"/system/new", base+"/work/new") }, ""},
		{"its folder became a link", []string{"tool", "sub2/new"}, func(base string) error { return os.Symlink(base+"/system", base+"/work/sub2") }, changes},
		{"output", []string{"sh", "-c", "tool >file 2>&1"}, func(base string) error { return write(base+"/work/file", "other") }, changes},
		{"input", []string{"sh", "-c", "tool <file"}, func(base string) error { return write(base+"/work/file", "other") }, changes},
		{"a redirection to several words", []string{"sh", "-c", "tool >f*"}, nil, ""},
		{"a document", []string{"sh", "-c", "tool <<<file"}, nil, ""},
		{"became a link to the same", []string{"tool", "file"}, func(base string) error {
			return errors.Join(os.Rename(base+"/work/file", base+"/work/moved"), os.Symlink("moved", base+"/work/file"))
		}, changes},
		{"the target of a link", []string{"tool", "link"}, func(base string) error { return write(base+"/work/data", "other") }, changes},
		{"a link out of the folder", []string{"tool", "out"}, func(base string) error {
			return errors.Join(os.Remove(base+"/work/out"), os.Symlink("data", base+"/work/out"))
		}, changes},
		{"another file", []string{"tool", "file"}, func(base string) error { return write(base+"/work/other", "x") }, offered},
		{"a file that commands cannot write", []string{"tool", "../system/tool2"}, func(string) error { return nil }, ""},
		{"one by its path", []string{"tool", "BASE/system/other"}, func(base string) error { return write(base+"/system/other", "new") }, offered},
		{"an option", []string{"tool", "--file=file"}, func(base string) error { return write(base+"/work/file", "other") }, changes},
		{"a short option", []string{"tool", "-xvffile"}, func(base string) error { return write(base+"/work/file", "other") }, changes},
		{"a line", []string{"tool", "file:5"}, func(base string) error { return write(base+"/work/file", "other") }, changes},
		{"a list", []string{"tool", "K=data,file,c"}, func(base string) error { return write(base+"/work/file", "other") }, changes},
		{"a response file", []string{"tool", "@file"}, func(base string) error { return write(base+"/work/file", "other") }, changes},
		{"words in a word", []string{"tool", "run file"}, func(base string) error { return write(base+"/work/file", "other") }, changes},
		{"a name with separators", []string{"tool", "a-b,c=d.txt"}, func(base string) error { return write(base+"/work/a-b,c=d.txt", "other") }, changes},
		{"a pipe in a word", []string{"strace", "-o", "|./file", "tool"}, func(string) error { return nil }, ""},
		{"in a writable folder of PATH", []string{"tool"}, func(base string) error { return write(base+"/work/bin/tool", "x") }, changes},
		{"an argument in PATH", []string{"tool", "other"}, func(base string) error { return write(base+"/work/bin/other", "x") }, changes},
		{"a profile", []string{"sh", "-c", "tool"}, func(base string) error { return write(base+"/work/home/.profile", "x") }, changes},
		{"in another conversation's folder", []string{"tool", "BASE/other/file"}, func(base string) error { return write(base+"/other/file", "x") }, changes},
		{"a program of another conversation", []string{"BASE/other/file"}, func(base string) error { return write(base+"/other/file", "x") }, changes},

		{"a link of the system", []string{"linked"}, func(base string) error { return write(base+"/work/data", "other") }, changes},
		{"a link of the system, started by another", []string{"env", "linked"}, func(base string) error { return write(base+"/work/data", "other") }, changes},
		{"a link of the system in a word", []string{"sed", "-n", "1elinked"}, func(base string) error { return write(base+"/work/data", "other") }, changes},

		{"a folder", []string{"tool", "sub"}, nil, ""},
		{"this folder", []string{"tool", "."}, nil, ""},
		{"the folder above", []string{"tool", ".."}, nil, ""},
		{"a folder of the system", []string{"tool", "/"}, nil, ""},
		{"a folder in an option", []string{"tool", "--dir=sub"}, nil, ""},
		{"a folder in a short option", []string{"tool", "-Csub"}, nil, ""},
		{"a folder in PATH", []string{"env", "PATH=BASE/work/sub:/bin", "tool"}, nil, ""},
		{"a link to a folder", []string{"tool", "lane"}, nil, ""},
		{"a named pipe", []string{"tool", "pipe"}, nil, ""},
		{"much content", []string{"tool", "large"}, nil, ""},
		{"many words", append([]string{"tool"}, make([]string, 1000)...), nil, ""},
		{"a long word", []string{"tool", strings.Repeat("a-", 10_000)}, nil, ""},
		{"a folder after a word that ends like it", []string{"tool", "xsub", "sub"}, nil, ""},
		{"a program by a way up", []string{"./sub/../file"}, nil, ""},
		{"a circle of links", []string{"tool", "loop"}, nil, ""},
		{"much content together", []string{"tool", "half", "half2"}, nil, ""},
		{"half as much", []string{"tool", "half"}, nil, offered},
		{"below a file", []string{"tool", "file/x"}, nil, offered},
		{"a long name", []string{"tool", strings.Repeat("n", 300)}, nil, offered},
		{"a folder in a folder of PATH", []string{"tool", "dir"}, nil, offered},
		{"a command of the program appears", []string{"tool", "x"}, func(base string) error { return write(base+"/work/bin/tool-x", "x") }, changes},
		{"a command of a command appears", []string{"env", "tool", "x"}, func(base string) error { return write(base+"/work/bin/tool-x", "x") }, changes},
		{"a folder like the program", []string{"sub", "x"}, func(string) error { return nil }, offered},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"work/file", "work/data", "work/sub/x", "work/home/x", "work/bin/dir/x", "system/tool", "system/other", "other/file"} {
				if err := write(filepath.Join(base, name), "text"); err != nil {
					t.Fatal(err)
				}
			}
			work := base + "/work"
			large, err := os.Create(work + "/large")
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range []error{
				os.Symlink("data", work+"/link"), os.Symlink("../system/other", work+"/out"), os.Symlink("sub", work+"/lane"),
				os.Symlink("../work/data", base+"/system/linked"),
				syscall.Mkfifo(work+"/pipe", 0o600), large.Truncate(policy.MaxContent + 1), large.Close(),
				os.Symlink("loop", work+"/loop"), write(work+"/half", ""), os.Truncate(work+"/half", policy.MaxContent/2+1),
				write(work+"/half2", ""), os.Truncate(work+"/half2", policy.MaxContent/2+1),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			p := policy.Place{
				Dir: work, Env: []string{"PATH=" + work + "/bin:" + base + "/system", "HOME=" + work + "/home"},
				Roots: []string{work, base + "/other"},
			}
			var argv []string
			for _, word := range tt.argv {
				argv = append(argv, strings.ReplaceAll(word, "BASE", base))
			}
			before, ok := p.Content(argv)
			got := offered
			if tt.change != nil && ok {
				if err := tt.change(base); err != nil {
					t.Fatal(err)
				}
				var after string
				if after, ok = p.Content(argv); after != before {
					got = changes
				}
			}
			if !ok {
				got = ""
			}
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
	p := policy.Place{Dir: "/nowhere", Env: []string{"PATH=/nowhere"}}
	twice, _ := p.Content([]string{"tool", "x", "x"})
	if thrice, ok := p.Content([]string{"tool", "x", "x", "x"}); !ok || thrice == twice {
		t.Errorf("a word that is there again: %t", ok)
	}
	if runtime.GOOS == "linux" { // whose file system has a file that opens and cannot be read
		if _, ok := (policy.Place{Dir: "/proc/self", Env: []string{"PATH=/nowhere"}, Roots: []string{"/proc"}}).Content([]string{"tool", "mem"}); ok {
			t.Error("a file that cannot be read")
		}
	}
	if _, ok := (policy.Place{Dir: "/", Env: []string{"PATH=/bin:"}}).Content([]string{"ls"}); ok {
		t.Error("the current folder is in PATH")
	}
}
