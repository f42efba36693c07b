package program

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/command"
	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
)

// starters are programs that start a program named in their arguments.
var starters = []string{
	"chrt", "doas", "env", "find", "gtimeout", "ionice", "nice", "nohup", "numactl", "prlimit", "setarch", "setpriv", "setsid", "stdbuf",
	"strace", "sudo", "taskset", "time", "timeout", "unbuffer",
}

// hidingStarters are programs that start others in ways that their arguments do not show:
// from a file, a script, another folder, or built in.
var hidingStarters = []string{
	"busybox", "chroot", "flock", "parallel", "runuser", "script", "su", "systemd-run", "toybox", "unshare", "watch", "xargs",
}

// startsReplaceable reports whether the command, or one in its script, uses a starter for
// a program that commands can write, or for one that cannot be determined.
func (p Place) startsReplaceable(argv []string, roots []os.FileInfo) (path string, yes bool) {
	mentioned, all := policy.Mentioned(argv)
	if !all {
		return "", true
	}
	for _, words := range mentioned {
		if len(words) == 0 {
			continue
		}
		name := filepath.Base(words[0])
		if slices.Contains(hidingStarters, name) {
			return "", true
		}
		if !slices.Contains(starters, name) {
			continue
		}
		// Which word is the program depends on the options, so every word is checked.
		for _, word := range words[1:] {
			if unclear(word) {
				return "", true
			}
			if path, err := command.LookPath(word, p.Dir, p.Env); err == nil && LeadsThrough(path, roots) {
				return path, true
			}
		}
	}
	return "", false
}

// unclear reports whether a word may change what later words name: a shell or another
// starter with a script, a new PATH, the placeholder of find, and -C and -S of env.
func unclear(word string) bool {
	name, _, assigns := strings.Cut(word, "=")
	switch {
	case policy.LooksLikeShell(word), slices.Contains(hidingStarters, filepath.Base(word)), word == "{}":
		return true
	case assigns && (name == "PATH" || name == "BASH_ENV" || name == "ENV"):
		return true
	case strings.HasPrefix(word, "--"):
		return strings.HasPrefix(word, "--c") || strings.HasPrefix(word, "--s")
	}
	return strings.HasPrefix(word, "-") && strings.ContainsAny(word, "CS")
}
