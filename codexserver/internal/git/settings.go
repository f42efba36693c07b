package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

var yes, no = []string{"true", "yes", "on", "1"}, []string{"false", "no", "off", "0"}

// taken are the settings that the mirror has from the configuration of the repository and of the user: the formats of the
// repository and the properties of its file system. None names a program, a file or an address.
var taken = []string{
	"extensions.objectformat", "extensions.refstorage",
	"core.filemode", "core.symlinks", "core.ignorecase", "core.precomposeunicode", "core.autocrlf", "core.eol",
	"core.sharedrepository",
}

func isTrue(value string) bool  { return slices.Contains(yes, strings.ToLower(value)) }
func isFalse(value string) bool { return slices.Contains(no, strings.ToLower(value)) }

// modeless reports whether the file system has no modes.
func (m *mirror) modeless() bool { return isFalse(m.settings["core.filemode"]) }

// userFiles returns the user's own configuration, in git's order.
func userFiles() []string {
	if file, ok := os.LookupEnv("GIT_CONFIG_GLOBAL"); ok {
		return []string{file}
	}
	return []string{filepath.Join(userFolder(), "config"), filepath.Join(os.Getenv("HOME"), ".gitconfig")}
}

// userFolder returns git's folder for files of the user.
func userFolder() string {
	set := os.Getenv("XDG_CONFIG_HOME")
	if set == "" {
		set = filepath.Join(os.Getenv("HOME"), ".config")
	}
	return filepath.Join(set, "git")
}

// readSettings reads the settings of the system and the user, with the files that they include, as git does for the
// repository, and then the repository's own. What cannot be read of the former sets nothing.
func (m *mirror) readSettings(ctx context.Context) error {
	c, all := call{env: []string{"GIT_DIR=" + m.folder()}}, false
	// git gets the repository's folder, for its name and branch, and the mirror's in place of its configuration
	if m.gitDir != "" {
		c.env = []string{"GIT_DIR=" + m.gitDir, "GIT_COMMON_DIR=" + m.folder()}
		// One start of git reads all settings if the repository's own include nothing.
		own, err := m.small("config")
		if all = err == nil && !bytes.Contains(bytes.ToLower(own), []byte("include")) &&
			!exists(filepath.Join(m.gitDir, "config.worktree")); all {
			file := filepath.Join(m.folder(), "config")
			if err := os.WriteFile(file, own, 0o600); err != nil {
				return err
			}
			defer os.Remove(file)
		}
	}
	if err := m.listSettings(ctx, c, "--includes"); err == nil && all {
		return nil
	}
	maps.DeleteFunc(m.settings, func(key, _ string) bool { return strings.HasPrefix(key, "include") })
	return m.ownSettings(ctx)
}

// ownSettings reads the repository's own settings as data, without the files that they include.
func (m *mirror) ownSettings(ctx context.Context) error {
	if m.gitDir == "" {
		return nil
	}
	files := []string{filepath.Join(m.commonDir, "config"), filepath.Join(m.gitDir, "config.worktree")}
	for _, file := range files {
		data, err := safefile.Read(file, maxSmallFile)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = m.listSettings(ctx, call{env: append(withoutUser[:len(withoutUser):len(withoutUser)],
				"GIT_DIR="+os.DevNull), stdin: string(data)}, "--no-includes", "--file=-")
		}
		if err != nil {
			return fmt.Errorf("the repository's configuration: %w", err)
		}
		if !isTrue(m.settings["extensions.worktreeconfig"]) {
			break
		}
	}
	for key := range m.settings {
		m.includes = m.includes || strings.HasPrefix(key, "include.") || strings.HasPrefix(key, "includeif.")
	}
	return nil
}

// listSettings adds what git config lists to the settings, by their names in lower case.
func (m *mirror) listSettings(ctx context.Context, c call, args ...string) (err error) {
	c.dir, c.confined = m.root, m.confined
	if c.confined == nil {
		if c.confined, err = m.programs.Confine(); err != nil {
			return err
		}
	}
	out, err := m.run(ctx, c, append([]string{"config", "--list", "-z"}, args...)...)
	for line := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		key, value, ok := strings.Cut(line, "\n")
		if !ok { // a key alone
			value = "true"
		}
		m.settings[key] = value
	}
	return err
}

// constants are the settings that do not depend on the repository.
const constants = `[core]
	bare = true
	repositoryformatversion = 1
	safecrlf = false
	untrackedCache = false
	splitIndex = false
	fsync = none
	attributesFile = /dev/null
[index]
	sparse = false
`

// letters are those of the values of settings.
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// fewFiles is the size in bytes of an index of so few files that git takes longer to start threads for them.
const fewFiles = 1 << 20

func (m *mirror) config() string {
	var text strings.Builder
	text.WriteString(constants)
	if info, err := os.Stat(filepath.Join(m.gitDir, "index")); err == nil && info.Size() < fewFiles {
		text.WriteString("[core]\n\tpreloadIndex = false\n")
	}
	for _, key := range taken {
		if value := m.settings[key]; value != "" && strings.Trim(value, letters) == "" {
			section, name, _ := strings.Cut(key, ".")
			fmt.Fprintf(&text, "[%s]\n\t%s = %s\n", section, name, value)
		}
	}
	return text.String()
}

// userFile returns the file that a setting of the user's names, if git would not block on it, or else "". Without the setting it
// is the file usual in git's folder of the user, unless usual is "".
func (m *mirror) userFile(key, usual string) string {
	file := m.settings[key]
	if rest, ok := strings.CutPrefix(file, "~/"); ok {
		file = filepath.Join(os.Getenv("HOME"), rest)
	}
	if file == "" && usual != "" {
		file = filepath.Join(userFolder(), usual)
	}
	if info, err := os.Stat(file); !filepath.IsAbs(file) || err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return file
}
