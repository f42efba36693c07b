package policy

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/proc"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// addGit checks that git in p.Dir starts no program that a repository or a linked file of the
// user names, and adds the settings that count. If a rule may allow the command by its
// beginning, it sets Setup.
func (u *Unasked) addGit(p Place, c *census, words []string, program string) error {
	if !c.fixed(program) {
		return fmt.Errorf("%s could be another program the next time", program)
	}
	text, err := gitConfigOf(p.Dir)
	if err != nil {
		return err
	}
	settings, remotes, err := readGitConfig(text)
	if err != nil {
		return err
	}
	top := repositoryOf(p.Dir)
	push := len(words) > 1 && words[1] == "push"
	if !push && exists(filepath.Join(top, ".git", "modules")) {
		return errors.New("the configuration of its submodules could start programs")
	}
	c.way(filepath.Join(top, ".git", "config"))
	c.way(filepath.Join(top, ".git", "hooks"))
	setup := p.newCensus()
	setup.path = c.path
	own, err := p.usersGit(setup)
	if err == nil {
		err = setup.err("your configuration of git names")
	}
	if err != nil {
		return err
	}
	c.ways = append(c.ways, setup.ways...)
	sum := fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q %x", settings, setup.sum.Sum(nil))))
	fmt.Fprintf(c.sum, "git %s\n", sum)
	u.Env = append(u.Env, p.overrides(c.path, own)...)
	if push && c.err("") == nil && pushesTo(remotes, words[2:]) {
		u.Setup = sum
	}
	return nil
}

// pushesTo reports whether git push sends to a remote that the configuration names.
func pushesTo(remotes map[string]bool, args []string) bool {
	for _, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			return remotes[arg] && remotes["origin"] // the words after the remote are branches
		}
	}
	return remotes["origin"] // otherwise git could take a folder of this name for it
}

// overrides are settings for git that count more than those of every file. They say what was
// found, for the case that a program of another home exchanges the configuration meanwhile.
func (p Place) overrides(path, own string) []string {
	settings := [][2]string{{"core.hooksPath", os.DevNull}, {"core.fsmonitor", "false"}}
	if ssh, err := proc.LookPath("ssh", "/", []string{"PATH=" + path}); err == nil && !gitSSH.Get().MatchString(own) {
		settings = append(settings, [2]string{"core.sshCommand", ssh})
	}
	env := []string{fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(settings))}
	for i, s := range settings {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s[1]))
	}
	return env
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

// usersGit adds the user's own configuration of git and ssh, and the programs that it names. It
// returns the text of that of git. It fails if git could start hooks of the workspace, look
// into submodules, whose configuration commands can write, or read a file that lies elsewhere:
// that may be a workspace of another server.
func (p Place) usersGit(c *census) (text string, err error) {
	homes := []string{p.value("HOME")}
	if u, err := user.LookupId(strconv.Itoa(os.Geteuid())); err == nil && u.HomeDir != homes[0] { // ssh reads no variable
		homes = append(homes, u.HomeDir)
	}
	git := []string{"/etc/gitconfig", "/usr/local/etc/gitconfig", "/opt/homebrew/etc/gitconfig", filepath.Join(homes[0], ".gitconfig"), filepath.Join(homes[0], ".config", "git", "config")}
	if config := p.value("XDG_CONFIG_HOME"); config != "" {
		git = append(git, filepath.Join(config, "git", "config"))
	}
	ssh := []string{"/etc/ssh/ssh_config"}
	for _, home := range homes {
		ssh = append(ssh, filepath.Join(home, ".ssh", "config"))
	}
	for i, file := range append(git, ssh...) {
		if !filepath.IsAbs(file) {
			return "", fmt.Errorf("%s is not absolute", file)
		}
		c.add(file, false)
		b, err := safefile.Read(file, maxGitConfig)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
			continue
		case err != nil:
			return "", fmt.Errorf("your configuration of git cannot be read: %w", err)
		case !c.fixed(file) && (isLinked(file, homes) || LeadsThrough(file, Folders(p.Roots))):
			return "", fmt.Errorf("%s is a link, or lies in a folder that commands can write", file)
		case i < len(git) && gitReaches.Get().Match(b):
			return "", fmt.Errorf("%s includes a file, or sets hooksPath or the recursion into submodules", file)
		case i >= len(git) && !c.fixed(file) && sshReaches.Get().Match(b):
			return "", fmt.Errorf("%s includes a file, or has a condition that starts a program", file)
		}
		if i < len(git) {
			text += string(b) + "\n"
		}
		if !c.fixed(file) {
			p.programsIn(c, string(b))
		}
	}
	return text, nil
}

// isLinked reports whether a file of the user, or one of the two folders above it, is a link.
// A home that is one does not count.
func isLinked(file string, homes []string) bool {
	for range 3 {
		if slices.Contains(homes, file) {
			break
		}
		if info, err := os.Lstat(file); err == nil && info.Mode()&os.ModeSymlink != 0 {
			return true
		}
		file = filepath.Dir(file)
	}
	return false
}

// programsIn adds the programs that a text names by their paths.
func (p Place) programsIn(c *census, text string) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n;,=\"'|&<>()!", r) }) {
		if rest, ok := strings.CutPrefix(word, "~/"); ok {
			word = filepath.Join(p.value("HOME"), rest)
		}
		if info, err := os.Stat(word); err == nil && filepath.IsAbs(word) && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			c.add(word, false)
		}
	}
}

// isFolder reports whether path is a folder, and no link to one.
func isFolder(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

const maxGitConfig = 64 << 10

// gitSection is a section of a repository's configuration after its bracket, with the name of a
// remote, or the word branch and the last remote of a branch. Git, gh and VS Code write these
// settings so. None starts a program or reads another file. Any other text is odd.
var gitSection = lazyregexp.Regexp{Text: `^(?:` +
	`core\](?:\n\t(?:repositoryformatversion = 0|bare = false|logallrefupdates = true|(?:filemode|ignorecase|precomposeunicode|symlinks) = (?:true|false)))*` +
	`|user\](?:\n\t(?:name|email) = [^\n"\\#;]*)*` +
	`|remote "([^\n"\\]+)"\](?:\n\turl = (?:(?:https|ssh)://[A-Za-z0-9][^\s"\\#;]*|[A-Za-z0-9_]+@[A-Za-z0-9][A-Za-z0-9.-]*:[^\s:"\\#;]+))` +
	`(?:\n\t(?:fetch = \+?refs/[^\s"\\#;]*|gh-resolved = [^\s"\\#;]*))*` +
	`|(branch) "[^\n"\\]+"\](?:\n\t(?:remote = ([A-Za-z0-9_.-]+)|merge = refs/heads/[^\s"\\#;]+|rebase = (?:true|false)|(?:vscode|gh)-merge-base = [^\s"\\#;]*))*` +
	`)$`}

var (
	gitSSH     = lazyregexp.Regexp{Text: `(?i)sshcommand`}
	sshReaches = lazyregexp.Regexp{Text: `(?im)^\s*(?:include|match\b.*\bexec)\b`}
	gitReaches = lazyregexp.Regexp{Text: `(?i)\[\s*include|hookspath|recurse`}
	gitHead    = lazyregexp.Regexp{Text: `^(?:ref: refs/[^\s]+|[0-9a-f]{40}|[0-9a-f]{64})\n?$`}
)

// readGitConfig reads a configuration whose sections are as git writes them. It returns the
// sections except those of branches, and the remotes. A branch may name only such a remote.
func readGitConfig(text string) (settings []string, remotes map[string]bool, err error) {
	odd := errors.New("the configuration of git has more than git itself writes for remotes and branches")
	text, ok := strings.CutPrefix(strings.TrimSuffix(text, "\n"), "[")
	if !ok || strings.ContainsAny(text, "\x00\r\v\f") {
		return nil, nil, odd
	}
	remotes = map[string]bool{}
	var branches []string
	for section := range strings.SplitSeq(text, "\n[") {
		m := gitSection.Get().FindStringSubmatch(section)
		switch {
		case m == nil:
			return nil, nil, odd
		case m[2] != "":
			branches = append(branches, m[3])
			continue
		case m[1] != "":
			remotes[m[1]] = true
		}
		settings = append(settings, section)
	}
	for _, remote := range branches {
		if remote != "" && !remotes[remote] {
			return nil, nil, fmt.Errorf("the configuration of git has a branch of %s, which is not a remote", remote)
		}
	}
	return settings, remotes, nil
}
