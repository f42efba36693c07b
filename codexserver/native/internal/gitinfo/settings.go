package gitinfo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/regularfile"
)

// settings are what counts of a repository's configuration, and the values that it
// may have: the formats of the repository and the ways of its file system. They
// are read as data and written anew. None names a program, a file or an address.
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

// readSettings reads the repository's configuration. Git runs in dir.
func (m *mirror) readSettings(dir string) error {
	data, err := regularfile.Read(filepath.Join(m.commonDir, "config"), maxSmallFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Git parses the text that it is given and does nothing that it says.
	out, err := m.run(dir, string(data), "config", "--file=-", "--no-includes", "--list", "-z")
	if err != nil {
		return fmt.Errorf("the repository's configuration: %w", err)
	}
	m.settings = map[string]string{}
	for entry := range strings.SplitSeq(out, "\x00") {
		key, value, hasValue := strings.Cut(entry, "\n")
		if !hasValue {
			value = "true"
		}
		// The first address of a remote is the one to fetch from; of all else the last counts.
		if _, ok := m.settings[key]; !ok || key != "remote.origin.url" {
			m.settings[key] = value
		}
	}
	return nil
}

// configure writes the mirror's configuration.
func (m *mirror) configure() error {
	var text strings.Builder
	text.WriteString("[core]\n\tbare = false\n\trepositoryformatversion = 1\n")
	for _, s := range settings {
		if value, ok := m.settings[s.key]; ok && slices.Contains(s.values, strings.ToLower(value)) {
			section, name, _ := strings.Cut(s.key, ".")
			fmt.Fprintf(&text, "[%s]\n\t%s = %s\n", section, name, strings.ToLower(value))
		}
	}
	return os.WriteFile(filepath.Join(m.common, "config"), []byte(text.String()), 0o600)
}

// quote writes a path for a file of git's that has one a line.
func quote(path string) string {
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
