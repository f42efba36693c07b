package report

import (
	"fmt"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/gitinfo"
)

// maxNamed bounds the files that a diff names without showing them.
const maxNamed = 100

// diffOf completes git's diff with notes about changes that it does not show: of files
// without a text diff, and by patches outside of the folder.
func diffOf(changes []gitinfo.Change, diff string, elsewhere []gitinfo.Change) string {
	var notes []string
	if len(diff) >= maxDiff {
		notes = append(notes, fmt.Sprintf("# the diff is longer than %d MiB and ends here; %d files have changed", maxDiff>>20, len(changes)))
		if last := strings.LastIndexByte(diff, '\n'); last >= 0 {
			diff = diff[:last+1]
		}
	}
	if diff == "" {
		notes = append(notes, named("without a diff", changes)...)
	} else if len(notes) == 0 {
		shown := strings.Count(diff, "\ndiff --git ") + 1
		if missing := len(changes) - shown; missing > 0 {
			notes = append(notes, fmt.Sprintf("# %d of %d changed files are not here: they are too large or could not be read", missing, len(changes)))
		}
	}
	notes = append(notes, named("changed by patches outside of the folder", elsewhere)...)
	if len(notes) > 0 {
		diff += strings.Join(notes, "\n") + "\n"
	}
	return diff
}

// named returns a line for each change, up to maxNamed.
func named(why string, changes []gitinfo.Change) (lines []string) {
	for i, c := range changes {
		if i == maxNamed {
			return append(lines, fmt.Sprintf("# %s: %d more", why, len(changes)-i))
		}
		lines = append(lines, fmt.Sprintf("# %s: %s %s", why, c.Kind, show(c.Path, maxPath)))
	}
	return lines
}

// diffOfPatches adds notes to the engine's diff of the turn's patches.
func diffOfPatches(diff string) string {
	if diff == "" {
		return ""
	}
	const note = "# from the patches of the turn alone: commands may have changed more\n"
	if len(diff) <= maxDiff {
		return note + strings.TrimSuffix(diff, "\n") + "\n"
	}
	return note + clip(diff, maxDiff) + fmt.Sprintf("\n# the diff is longer than %d MiB and ends here\n", maxDiff>>20)
}
