package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// settings are the settings that the mirror has from the repository's configuration, with their
// allowed values: the formats of the repository and the properties of its file system. None names a
// program, a file or an address.
var settings = []struct {
	key    string
	values []string
}{
	{"extensions.objectformat", []string{"sha1", "sha256"}},
	{"extensions.refstorage", []string{"files", "reftable"}},
	{"core.filemode", truths},
	{"core.symlinks", truths},
	{"core.ignorecase", truths},
	{"core.precomposeunicode", truths},
	{"core.autocrlf", append([]string{"input"}, truths...)},
	{"core.eol", []string{"lf", "crlf", "native"}},
}

var truths = []string{"true", "false", "yes", "no", "on", "off", "1", "0"}

func isTrue(value string) bool {
	return slices.Contains([]string{"true", "yes", "on", "1"}, strings.ToLower(value))
}

func isFalse(value string) bool {
	return slices.Contains([]string{"false", "no", "off", "0"}, strings.ToLower(value))
}

// configuration returns the settings of the repository and the user by key. Those of the repository
// are read as data, without the files that it includes.
func (m *mirror) configuration(ctx context.Context) (map[string]string, error) {
	found, ok := m.program.plainUser()
	if !ok {
		if err := m.reserve(); err != nil {
			return nil, err
		}
		out, err := m.program.run(ctx, call{dir: m.scratch, env: []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(m.scratch)}, confined: m.confined},
			"config", "--list", "-z", "--includes")
		if err != nil {
			return nil, fmt.Errorf("the user's configuration: %w", err)
		}
		parseSettings(found, out)
	}
	if m.gitDir == "" {
		return found, nil
	}
	own, err := m.settingsIn(ctx, filepath.Join(m.commonDir, "config"))
	if err == nil && isTrue(own["extensions.worktreeconfig"]) {
		var more map[string]string
		more, err = m.settingsIn(ctx, filepath.Join(m.gitDir, "config.worktree"))
		maps.Copy(own, more)
	}
	if err != nil {
		return nil, fmt.Errorf("the repository's configuration: %w", err)
	}
	maps.Copy(found, own)
	return found, nil
}

// settingsIn returns the settings in a file by key. Includes are not followed. Git parses the file, unless
// it is plain.
func (m *mirror) settingsIn(ctx context.Context, file string) (map[string]string, error) {
	data, err := safefile.Read(file, maxSmallFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if found, ok := plainSettings(string(data)); ok {
		return found, nil
	}
	return m.askSettings(ctx, string(data))
}

// askSettings lets git parse a configuration.
func (m *mirror) askSettings(ctx context.Context, text string) (map[string]string, error) {
	if err := m.reserve(); err != nil {
		return nil, err
	}
	c := call{dir: m.scratch, env: withoutUser, confined: m.confined, stdin: text}
	out, err := m.program.run(ctx, c, "config", "--file=-", "--no-includes", "--list", "-z")
	found := map[string]string{}
	parseSettings(found, out)
	return found, err
}

// parseSettings adds the settings that git lists.
func parseSettings(found map[string]string, list string) {
	for entry := range strings.SplitSeq(list, "\x00") {
		key, value, hasValue := strings.Cut(entry, "\n")
		if !hasValue {
			value = "true"
		}
		if entry != "" {
			keep(found, key, value)
		}
	}
}

// userWords are in each configuration that sets what the mirror has from it, or that includes others.
var userWords = []string{"excludesfile", "autocrlf", "eol", "include"}

// plainUser returns the settings of the user and of the system, as far as a mirror has them. It returns
// false if a file that has any of the userWords is not plain, or includes others: git must read them.
func (p program) plainUser() (found map[string]string, ok bool) {
	found = map[string]string{}
	if runtime.GOOS != "linux" { // the system's file may be anywhere
		return found, false
	}
	set := map[string]string{}
	for _, entry := range p.env {
		name, value, _ := strings.Cut(entry, "=")
		set[name] = value
	}
	home := set["HOME"]
	own := []string{filepath.Join(cmp.Or(set["XDG_CONFIG_HOME"], filepath.Join(home, ".config")), "git", "config"), filepath.Join(home, ".gitconfig")}
	if file, ok := set["GIT_CONFIG_GLOBAL"]; ok {
		own = []string{file}
	}
	system := p.system("gitconfig") // git reads one of them, or none
	if file, ok := set["GIT_CONFIG_SYSTEM"]; ok {
		system = []string{file}
	}
	for i, file := range slices.Concat(system, own) { // the last one that has a key counts
		if file == os.DevNull {
			continue
		}
		data, err := safefile.Read(file, maxSmallFile)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		text := strings.ToLower(string(data))
		if err == nil && !slices.ContainsFunc(userWords, func(word string) bool { return strings.Contains(text, word) }) {
			continue
		}
		values, plain := plainSettings(string(data))
		if err != nil || !plain || i < len(system) || strings.Contains(text, "include") {
			return map[string]string{}, false
		}
		maps.Copy(found, values)
	}
	return found, true
}

// system returns where a file of the system for all repositories may be.
func (p program) system(name string) []string {
	files := []string{filepath.Join("/etc", name)}
	for _, path := range []string{p.path, realPath(p.path)} {
		files = append(files, filepath.Join(filepath.Dir(filepath.Dir(path)), "etc", name))
	}
	return files
}

// keep adds a setting. The first URL of a remote is the one to fetch from. Of other settings the
// last value counts.
func keep(found map[string]string, key, value string) {
	if _, ok := found[key]; !ok || key != "remote.origin.url" {
		found[key] = value
	}
}

// Characters of a plain configuration: of names, of subsections, and with a space of values.
const (
	letters    = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	nameChars  = letters + "0123456789-"
	plainChars = nameChars + "._/:@+*~"
)

// plainSettings parses a configuration as git itself writes it, in which each line is empty, a
// section or a key with a value, and nothing is quoted or continued. It reports false for all others,
// which git must parse.
func plainSettings(text string) (found map[string]string, ok bool) {
	found = map[string]string{}
	section := ""
	for line := range strings.Lines(text) {
		line = strings.Trim(line, " \t\n")
		head, isSection := strings.CutPrefix(line, "[")
		if isSection {
			head, closed := strings.CutSuffix(head, "]")
			name, sub, hasSub := strings.Cut(head, ` "`)
			if section = strings.ToLower(name) + "."; hasSub {
				sub, quoted := strings.CutSuffix(sub, `"`)
				if section += sub + "."; !quoted || !consists(sub, plainChars) {
					return nil, false
				}
			}
			if !closed || !consists(name, nameChars) {
				return nil, false
			}
			continue
		}
		if line == "" {
			continue
		}
		key, value, _ := strings.Cut(line, " = ")
		if section == "" || !consists(key, nameChars) || !strings.Contains(letters, key[:1]) || !consists(value, plainChars+" ") || strings.Contains(value, "  ") {
			return nil, false
		}
		keep(found, section+strings.ToLower(key), strings.Trim(value, " "))
	}
	return found, true
}

// consists reports whether a text is not empty and has only some characters.
func consists(text, of string) bool { return text != "" && strings.Trim(text, of) == "" }

// constants are the settings that do not depend on the repository.
const constants = `[core]
	bare = false
	repositoryformatversion = 1
	logAllRefUpdates = false
	safecrlf = false
	untrackedCache = false
	splitIndex = false
	fsync = none
	looseCompression = 0
[index]
	sparse = false
[gc]
	auto = 0
[maintenance]
	auto = false
`

// configure writes the configuration.
func (m *mirror) configure() error {
	var text strings.Builder
	text.WriteString(constants)
	for _, s := range settings {
		if value, ok := m.settings[s.key]; ok && slices.Contains(s.values, strings.ToLower(value)) {
			section, name, _ := strings.Cut(s.key, ".")
			fmt.Fprintf(&text, "[%s]\n\t%s = %s\n", section, name, strings.ToLower(value))
		}
	}
	excludes := m.settings["core.excludesfile"]
	if rest, ok := strings.CutPrefix(excludes, "~/"); ok {
		excludes = filepath.Join(os.Getenv("HOME"), rest)
	}
	if !filepath.IsAbs(excludes) || !isList(excludes) {
		if excludes = defaultExcludes(); !isList(excludes) {
			excludes = os.DevNull
		}
	}
	fmt.Fprintf(&text, "[core]\n\texcludesFile = %s\n\tattributesFile = %s\n", quoted(excludes), os.DevNull)
	return os.WriteFile(filepath.Join(m.folder(), "config"), []byte(text.String()), 0o600)
}

// isList reports whether a path leads to a regular file, so that git cannot block on it.
func isList(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && !strings.ContainsFunc(path, unicode.IsControl)
}

// defaultExcludes returns git's default file of the user's global ignore patterns.
func defaultExcludes() string {
	dir := os.Getenv("XDG_CONFIG_HOME")
	if dir == "" {
		dir = filepath.Join(os.Getenv("HOME"), ".config")
	}
	return filepath.Join(dir, "git", "ignore")
}

// quoted quotes a path for git's configuration, and for its files with a path in each line.
func quoted(path string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(filepath.ToSlash(path)) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ':
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
