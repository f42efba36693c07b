package policy

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/proc"
)

// verified returns the environment of a command that runs without a question, and its PATH.
// The files that the variables name are part of the census. A variable that names a folder which
// commands could write is left out.
func (p Place) verified(c *census, program string) (env []string, path string) {
	path = strings.Join(slices.DeleteFunc(filepath.SplitList(p.value("PATH")), func(dir string) bool {
		return !filepath.IsAbs(dir) || !c.fixed(dir)
	}), string(filepath.ListSeparator))
	names := map[string]bool{"PATH": true}
	for _, entry := range slices.Backward(p.Env) { // the last entry counts
		name, value, ok := strings.Cut(entry, "=")
		if !ok || names[name] {
			continue
		}
		names[name] = true
		switch {
		case matches(dataVariables, name):
		case matches(codeVariables, name):
			git := strings.HasPrefix(name, "GIT_")
			if (!git || listed(gitPrograms, name)) && p.startsOnly(c, value, path) {
				break
			}
			if git && value != "" && programName(program) == "git" {
				c.fail(errors.New("the variable " + name + " is set, which changes what git starts"))
			}
			continue
		case p.names(c, value):
			continue
		}
		env = append(env, entry)
	}
	slices.Sort(env)
	return append(env, "PATH="+path), path
}

// startsOnly reports whether the value of a variable is a program or folder that no command
// can write: by its path, or by a name that PATH has.
func (p Place) startsOnly(c *census, value, path string) bool {
	if value == "" || strings.ContainsFunc(value, isActive) || strings.ContainsAny(value, " :,=@%+") {
		return false
	}
	if strings.Contains(value, "/") {
		return c.fixed(value)
	}
	found, err := proc.LookPath(value, "/", []string{"PATH=" + path})
	return err == nil && c.fixed(found)
}

// names adds the files that a variable names by their paths. It reports whether the variable
// names a folder that commands could write: what a program loads from there is not known.
func (p Place) names(c *census, value string) (folder bool) {
	for _, word := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" \t\n:;,=\"'|&<>()", r) }) {
		file := word
		if rest, ok := strings.CutPrefix(word, "~/"); ok {
			file = filepath.Join(p.value("HOME"), rest)
		}
		if !strings.Contains(file, "/") || strings.HasPrefix(file, "//") { // a word, or an address
			continue
		}
		file = p.absolute(file)
		switch info, err := os.Stat(file); {
		case err == nil && info.IsDir() && !c.fixed(file):
			folder = true
			continue
		case err == nil && !info.IsDir() && !info.Mode().IsRegular(): // a socket, as that of tmux: it has no code
			continue
		}
		c.add(file, false)
	}
	return folder
}

// matches reports whether a list has a name. A * at the end of one in the list stands for any
// rest.
func matches(list, name string) bool {
	for w := range strings.FieldsSeq(list) {
		if prefix, open := strings.CutSuffix(w, "*"); w == name || open && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// dataVariables start nothing: they are data, or name where programs keep data.
const dataVariables = `
	CI CODEX_* COLORTERM COLUMNS DBUS_SESSION_BUS_ADDRESS DISPLAY FORCE_COLOR GIT_AUTHOR_* GIT_COMMITTER_* GIT_CONFIG_NOSYSTEM GIT_CURL_VERBOSE GIT_HTTP_* GIT_LFS_SKIP_SMUDGE GIT_MERGE_AUTOEDIT
	GIT_OPTIONAL_LOCKS GIT_SSL_* GIT_TERMINAL_PROMPT GPG_TTY HOME HOSTNAME INVOCATION_ID JOURNAL_STREAM LANG LANGUAGE LC_* LINES LOGNAME
	LS_COLORS MAIL NODE_ENV NODE_EXTRA_CA_CERTS NODE_NO_WARNINGS NO_COLOR NO_PROXY OLDPWD PWD PYTHONDONTWRITEBYTECODE
	PYTHONHASHSEED PYTHONIOENCODING PYTHONUNBUFFERED PYTHONUTF8 SHLVL SSH_AGENT_PID SSH_AUTH_SOCK SSH_CLIENT SSH_CONNECTION SSH_TTY
	SSL_CERT_DIR SSL_CERT_FILE TEMP TERM TERM_* TMP TMPDIR TZ USER USERNAME WAYLAND_DISPLAY XAUTHORITY XDG_* all_proxy ftp_proxy
	http_proxy https_proxy no_proxy ALL_PROXY HTTP_PROXY HTTPS_PROXY`

// codeVariables name programs, code, or where both are found. A command without a question
// gets one only if it leads to what no command can write.
const codeVariables = `
	BASH* BROWSER BUNDLE_* CDPATH CLASSPATH COMSPEC DYLD_* EDITOR ENV GEM_* GIT_* GLIBC_TUNABLES IFS JAVA_TOOL_OPTIONS
	JDK_JAVA_OPTIONS LD_* LESSCLOSE LESSOPEN LUA_* MANPAGER NODE_* PAGER PERL* PROMPT_COMMAND PS0 PS1 PS2 PS4 PYTHON* RUBY* SHELL
	SHELLOPTS SSH_ASKPASS* SUDO_ASKPASS VISUAL VSCODE_* ZDOTDIR _ _JAVA_OPTIONS`

// gitPrograms are the variables of git that are no more than a program or a folder of programs.
const gitPrograms = `GIT_ASKPASS GIT_EDITOR GIT_EXEC_PATH GIT_PAGER GIT_SEQUENCE_EDITOR GIT_SSH`
