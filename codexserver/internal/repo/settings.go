package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// settings are the settings that are taken from a repository's configuration, with their
// allowed values: the formats of the repository and the properties of its file system.
// They are read as data and written again. None names a program, a file or an address.
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
	{"core.autocrlf", []string{"input", "true", "false", "yes", "no", "on", "off", "1", "0"}},
	{"core.eol", []string{"lf", "crlf", "native"}},
}

var truths = []string{"true", "false", "yes", "no", "on", "off", "1", "0"}

func isTrue(value string) bool {
	return slices.Contains([]string{"true", "yes", "on", "1"}, strings.ToLower(value))
}

func isFalse(value string) bool {
	return slices.Contains([]string{"false", "no", "off", "0"}, strings.ToLower(value))
}

// readConfig reads a configuration file of a repository as data. A missing file is empty.
func readConfig(file string) ([]byte, error) {
	data, err := safefile.Read(file, maxSmallFile)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return data, err
}

// parseSettings returns the values in a configuration by key. Includes are not followed. Git runs
// in dir, unless the configuration is plain.
func (p program) parseSettings(ctx context.Context, data []byte, dir string) (map[string]string, error) {
	if found, ok := plainSettings(string(data)); ok {
		return found, nil
	}
	return p.askSettings(ctx, data, dir)
}

// askSettings lets git parse a configuration.
func (p program) askSettings(ctx context.Context, data []byte, dir string) (map[string]string, error) {
	// Git only parses the text. Neither these settings nor the user's affect this call; an
	// includeIf of the user's would fail without a repository.
	out, err := p.run(ctx, call{dir: dir, env: withoutUser, stdin: string(data)}, "config", "--file=-", "--no-includes", "--list", "-z")
	if err != nil {
		return nil, fmt.Errorf("the repository's configuration: %w", err)
	}
	found := map[string]string{}
	for entry := range strings.SplitSeq(out, "\x00") {
		if entry == "" {
			continue
		}
		key, value, hasValue := strings.Cut(entry, "\n")
		if !hasValue {
			value = "true"
		}
		keep(found, key, value)
	}
	return found, nil
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
	plainChars = nameChars + "._/:@+*"
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

// configuration returns the text of a configuration file with the known settings of a
// repository.
func configuration(own map[string]string) string {
	var text strings.Builder
	text.WriteString("[core]\n\tbare = false\n\trepositoryformatversion = 1\n")
	for _, s := range settings {
		if value, ok := own[s.key]; ok && slices.Contains(s.values, strings.ToLower(value)) {
			section, name, _ := strings.Cut(s.key, ".")
			fmt.Fprintf(&text, "[%s]\n\t%s = %s\n", section, name, strings.ToLower(value))
		}
	}
	return text.String()
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
