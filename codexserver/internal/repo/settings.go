package repo

import (
	"context"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
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

// readConfig reads a configuration file of a repository as data. A missing file is empty.
func readConfig(file string) ([]byte, error) {
	data, err := safefile.Read(file, maxSmallFile)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return data, err
}

// parseSettings returns the values in a configuration by key. Includes are not followed. Git runs
// in dir.
func (p program) parseSettings(ctx context.Context, data []byte, dir string) (map[string]string, error) {
	// Git only parses the text. Neither these settings nor the user's affect this call; an
	// includeIf of the user's would fail without a repository.
	out, err := p.run(ctx, call{dir: dir, env: withoutUser, stdin: string(data)}, "config", "--file=-", "--no-includes", "--list", "-z")
	if err != nil {
		return nil, fmt.Errorf("the repository's configuration: %w", err)
	}
	found := map[string]string{}
	for entry := range strings.SplitSeq(out, "\x00") {
		key, value, hasValue := strings.Cut(entry, "\n")
		if !hasValue {
			value = "true"
		}
		// The first URL of a remote is the one to fetch from. Of other settings the last
		// value counts.
		if _, ok := found[key]; !ok || key != "remote.origin.url" {
			found[key] = value
		}
	}
	return found, nil
}

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
