package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

var yes, no = []string{"true", "yes", "on", "1"}, []string{"false", "no", "off", "0"}

// sections are those of the settings that the mirror has from the configuration of the repository and of the user: the
// formats of the repository and the properties of its file system. None names a program, a file or an address.
var sections = []struct{ name, settings string }{
	{"extensions", "objectformat refstorage"},
	{"core", "filemode symlinks ignorecase precomposeunicode autocrlf eol"},
}

// settingLine is a line of a configuration with one of the settings, or a path. No other section has these keys.
var settingLine = lazyregexp.Regexp{Text: `(?im)^[ \t]*(?:\[.*\])?[ \t]*` +
	`(objectformat|refstorage|filemode|symlinks|ignorecase|precomposeunicode|autocrlf|eol|excludesfile|bare|worktree)` +
	`[ \t]*(=[ \t]*(?:"([^"\n]*)"|([^"#;\n]*?)))?[ \t\r]*(?:[#;].*)?$`}

func isTrue(value string) bool  { return slices.Contains(yes, strings.ToLower(value)) }
func isFalse(value string) bool { return slices.Contains(no, strings.ToLower(value)) }

// userFiles returns the user's own configuration, in git's order.
func userFiles() []string {
	if file, ok := os.LookupEnv("GIT_CONFIG_GLOBAL"); ok {
		return []string{file}
	}
	home, set := os.Getenv("HOME"), os.Getenv("XDG_CONFIG_HOME")
	if set == "" {
		set = filepath.Join(home, ".config")
	}
	return []string{filepath.Join(set, "git/config"), filepath.Join(home, ".gitconfig")}
}

// configuration reads the settings of the system, the user and the repository, in git's order. They are
// read as data, without the files that they include.
func (m *mirror) configuration() error {
	files := []string{"/etc/gitconfig", filepath.Join(filepath.Dir(filepath.Dir(paths.Real(m.binary))), "etc/gitconfig")}
	if file, ok := os.LookupEnv("GIT_CONFIG_SYSTEM"); ok {
		files = []string{file}
	}
	if isTrue(os.Getenv("GIT_CONFIG_NOSYSTEM")) {
		files = nil
	}
	for _, file := range append(files, userFiles()...) {
		_ = m.read(file) // one that cannot be read sets nothing
	}
	if m.gitDir == "" {
		return nil
	}
	for _, file := range []string{filepath.Join(m.commonDir, "config"), filepath.Join(m.gitDir, "config.worktree")} {
		if err := m.read(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the repository's configuration: %w", err)
		}
	}
	return nil
}

func (m *mirror) read(file string) error {
	data, err := safefile.Read(file, maxSmallFile)
	for _, line := range settingLine.Get().FindAllStringSubmatch(string(data), -1) {
		if line[2] == "" { // a key alone
			line[3] = "true"
		}
		m.settings[strings.ToLower(line[1])] = line[3] + line[4]
	}
	return err
}

// constants are the settings that do not depend on the repository.
const constants = `[core]
	bare = false
	repositoryformatversion = 1
	safecrlf = false
	untrackedCache = false
	splitIndex = false
	fsync = none
	looseCompression = 0
	attributesFile = /dev/null
[index]
	sparse = false
`

// letters are those of the values of settings.
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

func (m *mirror) config() []byte {
	text := []byte(constants)
	for _, section := range sections {
		for name := range strings.FieldsSeq(section.settings) {
			if value := m.settings[name]; value != "" && strings.Trim(value, letters) == "" {
				text = fmt.Appendf(text, "[%s]\n\t%s = %s\n", section.name, name, value)
			}
		}
	}
	return text
}

// excludes returns the user's global ignore patterns if git would not block on them, or "" if git's default counts.
func (m *mirror) excludes() string {
	file := m.settings["excludesfile"]
	if rest, ok := strings.CutPrefix(file, "~/"); ok {
		file = filepath.Join(os.Getenv("HOME"), rest)
	}
	if info, err := os.Stat(file); !filepath.IsAbs(file) || err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return file
}
