package paths

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNetwork is the reason why a path is not opened, see [Local].
var ErrNetwork = errors.New("a name of the network or of a device is opened only in the share of the working folder")

// Local fails with an error that wraps [ErrNetwork] if Windows takes a path for a name of the network or of a
// device, as \\host\share, \\.\pipe\name and \\?\UNC\host\share. Opening one signs in there, with the hash of the
// user's password. A name in the share in which the folder lies is no such name. The system is a
// [runtime.GOOS]; others than Windows have no such names.
func Local(system, path, folder string) error {
	if system != "windows" {
		return nil
	}
	if there := share(path); there != "" && there != share(folder) {
		return fmt.Errorf("%s: %w", path, ErrNetwork)
	}
	return nil
}

// Drive returns a path without the mark that it is one for Windows alone, as in \\?\C:\work, if it names a drive.
// Other programs, and our comparisons, know the path without it. The system is a [runtime.GOOS].
func Drive(system, path string) string {
	if rest, ok := strings.CutPrefix(strings.ReplaceAll(path, "/", `\`), `\\?\`); ok && system == "windows" &&
		len(rest) > 2 && rest[1:3] == `:\` {
		return rest
	}
	return path
}

// share returns the host and share of a name of the network, or the device of a name of a device. It is ""
// for a name on a drive.
func share(path string) string {
	path = strings.ToLower(strings.ReplaceAll(path, "/", `\`))
	for _, prefix := range []string{`\\?\`, `\??\`} {
		rest, ok := strings.CutPrefix(path, prefix)
		if !ok {
			continue
		}
		if len(rest) > 2 && rest[1:3] == `:\` || strings.HasPrefix(rest, "volume{") {
			return ""
		}
		path = `\\` + strings.TrimPrefix(rest, `unc\`)
	}
	names, ok := strings.CutPrefix(path, `\\`)
	if !ok {
		return ""
	}
	host, rest, _ := strings.Cut(names, `\`)
	name, _, _ := strings.Cut(rest, `\`)
	return `\\` + host + `\` + name
}
