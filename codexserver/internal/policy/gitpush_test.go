//go:build unix

package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
)

// TestPushesOf checks for which repositories and which configuration of the user a rule may let git
// push leave the sandbox.
func TestPushesOf(t *testing.T) {
	const every = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = false
	logallrefupdates = true
	ignorecase = false
	precomposeunicode = true
	symlinks = true
[remote "origin"]
	url = https://localhost/work.git
	fetch = +refs/heads/*:refs/remotes/origin/*
	gh-resolved = base
[branch "main"]
	remote = origin
	merge = refs/heads/main
	rebase = true
	vscode-merge-base = origin/main
	gh-merge-base = main
[user]
	name = A B
	email = a@localhost
`
	linked := func(name string) func(dir string) error {
		return func(dir string) error {
			file := filepath.Join(dir, ".git", name)
			return errors.Join(os.Rename(file, file+"2"), os.Symlink(filepath.Base(file)+"2", file))
		}
	}
	users := func(name, text string) func(string) error {
		return func(string) error { return write(filepath.Join(os.Getenv("HOME"), name), text) }
	}
	linkedAtHome := func(name string) func(string) error { // to a folder with a harmless configuration
		return func(string) error {
			link, dots := filepath.Join(os.Getenv("HOME"), name), filepath.Join(os.Getenv("HOME"), "dots")
			rest, err := filepath.Rel(name, ".config/git/config")
			return errors.Join(err, write(filepath.Join(dots, rest), "[user]\n\tname = x\n"), os.MkdirAll(filepath.Dir(link), 0o700), os.Symlink(dots, link))
		}
	}
	const includes = "[include]\n\tpath = x\n"
	for _, tt := range []struct {
		name   string
		change func(dir string) error
		env    string // a variable of the server
		argv   string // further words
		want   bool
	}{
		{name: "as it is", want: true},
		{name: "all settings", change: func(dir string) error { return write(dir+"/.git/config", every) }, want: true},
		{name: "samples of hooks", change: func(dir string) error { return write(dir+"/.git/hooks/pre-push.sample", "") }, want: true},
		{name: "a hook", change: func(dir string) error { return write(dir+"/.git/hooks/pre-push", "") }},
		{name: "hooks that cannot be read", change: func(dir string) error { return write(dir+"/.git/hooks", "") }},
		{name: "an unknown head", change: func(dir string) error { return write(dir+"/.git/HEAD", "refs/heads/main\n") }},
		{name: "no head", change: func(dir string) error { return os.Remove(dir + "/.git/HEAD") }},
		{name: "a linked repository", change: func(dir string) error {
			return errors.Join(os.Rename(dir+"/.git", dir+"/git"), os.Symlink("git", dir+"/.git"))
		}},
		{name: "linked objects", change: linked("objects")},
		{name: "no objects", change: func(dir string) error { return os.Remove(dir + "/.git/objects") }},
		{name: "linked references", change: linked("refs")},
		{name: "no configuration", change: func(dir string) error { return os.Remove(dir + "/.git/config") }},
		{name: "another remote", argv: "far", change: func(dir string) error {
			return write(dir+"/.git/config", every+"[remote \"far\"]\n\turl = https://localhost/far.git\n")
		}, want: true},
		{name: "a remote without an address", argv: "far", change: func(dir string) error {
			return write(dir+"/.git/config", every+"[remote \"far\"]\n\tfetch = +refs/heads/*:refs/remotes/far/*\n")
		}},
		{name: "a branch of a remote without an address", change: func(dir string) error {
			return write(dir+"/.git/config", every+"[remote \"far\"]\n\tfetch = +refs/heads/*:refs/remotes/far/*\n[branch \"x\"]\n\tremote = far\n")
		}},

		{name: "the user's configuration", change: users(".gitconfig", "[user]\n\tname = x\n"), want: true},
		{name: "the user's configuration includes", change: users(".gitconfig", includes)},
		{name: "the user's other configuration includes", change: users(".config/git/config", includes)},
		{name: "the user's configuration elsewhere includes", change: users("xdg/git/config", includes)},
		{name: "the user's configuration has hooks", change: users(".gitconfig", "[core]\n\thooksPath = x\n")},
		{name: "the user's configuration pushes submodules", change: users(".gitconfig", "[push]\n\trecurseSubmodules = on-demand\n")},
		{name: "the user's configuration is a folder", change: users(".gitconfig/x", "")},
		{name: "the user's configuration is a link", change: func(dir string) error {
			return errors.Join(write(filepath.Join(dir, "..", "dots"), ""), os.Symlink(filepath.Join(dir, "..", "dots"), filepath.Join(os.Getenv("HOME"), ".gitconfig")))
		}},
		{name: "the user's configuration of ssh", change: users(".ssh/config", "Host x\n\tProxyCommand nc %h %p\n"), want: true},
		{name: "the user's configuration of ssh includes", change: users(".ssh/config", "include x\n")},
		{name: "the user's configuration of ssh starts a program", change: users(".ssh/config", "Match host x exec \"x\"\n")},
		{name: "the user's configuration of ssh is a link", change: func(dir string) error {
			home := os.Getenv("HOME")
			return errors.Join(write(filepath.Join(dir, "ssh"), ""), os.Mkdir(home+"/.ssh", 0o700), os.Symlink(filepath.Join(dir, "ssh"), home+"/.ssh/config"))
		}},
		{name: "the user's folder of ssh is a link", change: func(dir string) error {
			return errors.Join(write(filepath.Join(dir, "ssh", "config"), ""), os.Symlink(filepath.Join(dir, "ssh"), os.Getenv("HOME")+"/.ssh"))
		}},
		{name: "the user's folder of configurations is a link", change: linkedAtHome(".config")},
		{name: "the user's folder of git is a link", change: linkedAtHome(".config/git")},
		{name: "a program of git", env: "GIT_SSH"},
		{name: "a program of git with words", env: "GIT_SSH_COMMAND"},
		{name: "a program for secrets", env: "GIT_ASKPASS"},
		{name: "a folder of programs of git", env: "GIT_EXEC_PATH"},
		{name: "another configuration", env: "GIT_CONFIG_GLOBAL"},
		{name: "another configuration of the system", env: "GIT_CONFIG_SYSTEM"},
		{name: "settings in the environment", env: "GIT_CONFIG_COUNT"},
		{name: "parameters in the environment", env: "GIT_CONFIG_PARAMETERS"},
		{name: "another repository", env: "GIT_DIR"},
		{name: "another common folder", env: "GIT_COMMON_DIR"},
		{name: "another variable", env: "GIT_AUTHOR_NAME", want: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := repository(t)
			t.Setenv("XDG_CONFIG_HOME", filepath.Join(os.Getenv("HOME"), "xdg"))
			for _, name := range []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "GIT_DIR", "GIT_COMMON_DIR"} {
				t.Setenv(name, "")
			}
			if tt.env != "" {
				t.Setenv(tt.env, "x")
			}
			if tt.change != nil {
				if err := tt.change(dir); err != nil {
					t.Fatal(err)
				}
			}
			argv := []string{"git", "push"}
			if tt.argv != "" {
				argv = append(argv, tt.argv)
			}
			q := asked(dir, argv)
			if p, err := policy.Explain(q); (err == nil) != tt.want || err == nil && (!p.Rule.Outside || p.Rule.Content == "") {
				t.Errorf("%+v, %v", p.Rule, err)
			}
		})
	}
}
