package policy

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// pushes checks that git push in dir starts no program that a repository names, and sends to
// a remote that the configuration names. The sum is of all settings that count. Without args,
// the remote is not checked.
func pushes(dir string, args []string) (sum string, err error) {
	if err := usersGitConfig(); err != nil {
		return "", err
	}
	text, err := gitConfigOf(dir)
	if err != nil {
		return "", err
	}
	settings, remotes, err := readGitConfig(text)
	if err != nil {
		return "", err
	}
	if !remotes["origin"] { // git could take a folder of this name for it
		return "", errors.New("the configuration of git has no remote named origin with an address on the network")
	}
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			continue
		}
		if !remotes[arg] {
			return "", fmt.Errorf("%s is not a remote with an address on the network", arg)
		}
		break // the words after the remote are branches
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(settings, "\n")))), nil
}

// gitConfigOf returns the only configuration of a repository that git reads in dir. It fails
// if git could use another repository, or start a hook.
func gitConfigOf(dir string) (text string, err error) {
	top := repositoryOf(dir)
	for at := dir; at != top; at = filepath.Dir(at) {
		if exists(filepath.Join(at, "HEAD")) {
			return "", fmt.Errorf("git could take %s for a repository", at)
		}
	}
	dot := filepath.Join(top, ".git")
	head, err := safefile.Read(filepath.Join(dot, "HEAD"), maxGitConfig)
	if err != nil || !gitHead.Get().Match(head) || !isFolder(dot) || !isFolder(filepath.Join(dot, "objects")) || !isFolder(filepath.Join(dot, "refs")) {
		return "", errors.New("it is no repository of git, or one that is linked to another")
	}
	if exists(filepath.Join(dot, "commondir")) {
		return "", errors.New("the repository is linked to another")
	}
	hooks, err := os.ReadDir(filepath.Join(dot, "hooks"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("the hooks of git cannot be read")
	}
	for _, hook := range hooks {
		if !strings.HasSuffix(hook.Name(), ".sample") {
			return "", fmt.Errorf("git may start the hook %q", hook.Name())
		}
	}
	config, err := safefile.Read(filepath.Join(dot, "config"), maxGitConfig)
	if err != nil {
		return "", errors.New("the configuration of git cannot be read")
	}
	return string(config), nil
}

// usersGitConfig returns an error if the user's own configuration may have git push start hooks
// of the workspace, or look into submodules, whose configuration commands can write.
func usersGitConfig() error {
	files := []string{"/etc/gitconfig", "/usr/local/etc/gitconfig", "/opt/homebrew/etc/gitconfig"}
	if home, err := os.UserHomeDir(); err == nil {
		files = append(files, filepath.Join(home, ".gitconfig"), filepath.Join(home, ".config", "git", "config"))
	}
	if dir := os.Getenv("XDG_CONFIG_HOME"); dir != "" {
		files = append(files, filepath.Join(dir, "git", "config"))
	}
	for _, name := range []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "GIT_DIR", "GIT_COMMON_DIR"} {
		if os.Getenv(name) != "" {
			return fmt.Errorf("%s is set", name)
		}
	}
	for _, file := range files {
		text, err := safefile.Read(file, maxGitConfig)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		case err != nil:
			return fmt.Errorf("your configuration of git cannot be read: %w", err)
		case gitReaches.Get().Match(text):
			return fmt.Errorf("%s includes a file, or sets hooksPath or the recursion into submodules", file)
		}
	}
	return nil
}

// isFolder reports whether path is a folder, and no link to one.
func isFolder(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

const maxGitConfig = 64 << 10

var (
	gitSection = lazyregexp.Regexp{Text: `^\[([a-zA-Z]+)(?: "([^"\\]+)")?\]$`}
	gitSetting = lazyregexp.Regexp{Text: `^([a-zA-Z][a-zA-Z0-9-]*)\s*=\s*([^"\\#;]*)$`}
	gitReaches = lazyregexp.Regexp{Text: `(?i)\[\s*include|hookspath|recurse`}
	gitHead    = lazyregexp.Regexp{Text: `^(?:ref: refs/[^\s]+|[0-9a-f]{40}|[0-9a-f]{64})\n?$`}
)

// gitSettings are settings of a repository that start no program and read no other file, with
// what their values must match.
var gitSettings = map[string]*lazyregexp.Regexp{
	"core.repositoryformatversion": {Text: `^0$`},
	"core.filemode":                {Text: `^(?:true|false)$`},
	"core.bare":                    {Text: `^false$`},
	"core.logallrefupdates":        {Text: `^true$`},
	"core.ignorecase":              {Text: `^(?:true|false)$`},
	"core.precomposeunicode":       {Text: `^(?:true|false)$`},
	"core.symlinks":                {Text: `^(?:true|false)$`},
	"remote.url":                   {Text: `^(?:(?:https|ssh)://[A-Za-z0-9][^\s]*|[A-Za-z0-9_]+@[A-Za-z0-9][A-Za-z0-9.-]*:[^\s:]+)$`},
	"remote.fetch":                 {Text: `^\+?refs/[^\s]*$`},
	"branch.remote":                {Text: `^[A-Za-z0-9_.-]+$`},
	"remote.gh-resolved":           {Text: `^[^\s]*$`},
	"branch.merge":                 {Text: `^refs/heads/[^\s]+$`},
	"branch.rebase":                {Text: `^(?:true|false)$`},
	"branch.vscode-merge-base":     {Text: `^[^\s]*$`},
	"branch.gh-merge-base":         {Text: `^[^\s]*$`},
	"pull.rebase":                  {Text: `^(?:true|false)$`},
	"push.autosetupremote":         {Text: `^(?:true|false)$`},
	"push.default":                 {Text: `^(?:nothing|simple|current|upstream)$`},
	"user.name":                    {Text: `^.*$`},
	"user.email":                   {Text: `^.*$`},
}

// readGitConfig reads a configuration that has only settings of the list. It returns the
// settings except those of branches, and the remotes. A branch may name only such a remote.
func readGitConfig(text string) (settings []string, remotes map[string]bool, err error) {
	if strings.ContainsAny(text, "\x00\r\v\f") {
		return nil, nil, errors.New("the configuration of git has a character that is not known")
	}
	remotes = map[string]bool{}
	var section, name string
	var branches []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if m := gitSection.Get().FindStringSubmatch(line); m != nil {
			section, name = strings.ToLower(m[1]), m[2]
			continue
		}
		m := gitSetting.Get().FindStringSubmatch(line)
		if m == nil {
			return nil, nil, errors.New("the configuration of git has a line that is not known")
		}
		key := section + "." + strings.ToLower(m[1])
		want, known := gitSettings[key]
		if !known || (name != "") != (section == "remote" || section == "branch") || !want.Get().MatchString(m[2]) {
			return nil, nil, fmt.Errorf("the configuration of git sets %s", key)
		}
		switch {
		case key == "branch.remote":
			branches = append(branches, m[2])
		case key == "remote.url":
			remotes[name] = true
		}
		if section != "branch" {
			settings = append(settings, fmt.Sprintf("%s %q %s", key, name, m[2]))
		}
	}
	for _, remote := range branches {
		if !remotes[remote] {
			return nil, nil, fmt.Errorf("the configuration of git has a branch of %s, which is not a remote", remote)
		}
	}
	return settings, remotes, nil
}
