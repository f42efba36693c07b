package approval

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
)

// othersRun is why a file deserves attention that is protected by its name.
const othersRun = "other programs run it or obey it"

// othersStart is why a file deserves attention that other programs run or obey once a person or a
// service starts them.
const othersStart = "other programs run it"

// startNames are the names of such files, in lower case. Patches of them are asked about no more than
// others: only the question names them first.
var startNames = []string{
	// scripts, and where packages come from
	"package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs",
	// what builds and tests run
	"makefile", "gnumakefile", "justfile", "taskfile.yml", "build.rs", "setup.py", "conftest.py",
	// what git runs, once it is set up
	".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml", ".gitattributes", ".gitmodules",
	// what agents are told
	"agents.md", "claude.md", "gemini.md",
	// services
	".gitlab-ci.yml", "jenkinsfile", "action.yml", "action.yaml",
}

// startFolders are those of which services run each file.
var startFolders = []string{"/.github/workflows/", "/.circleci/", "/.buildkite/"}

// starts reports whether other programs run or obey a file once they are started.
func starts(path string) bool {
	path = strings.ToLower(filepath.ToSlash(path))
	return slices.Contains(startNames, path[strings.LastIndexByte(path, '/')+1:]) ||
		slices.ContainsFunc(startFolders, func(folder string) bool { return strings.Contains(path, folder) })
}

// why returns why paths of a patch deserve attention, from its engine and by their names: as
// they are, and as the patch names them.
func (p *Patch) why() map[string]string {
	real := make(map[string]string, len(p.Changes)) // by the name in the patch
	for path, f := range p.Changes {
		real[path] = path
		if to := f.MovedTo(); to != "" {
			real[to] = to
		}
	}
	for path, via := range p.Links {
		real[via] = path
	}
	why := map[string]string{}
	for path := range real {
		if starts(path) {
			why[real[path]] = othersStart
		}
	}
	for _, path := range patch.ProtectedOf(slices.Sorted(maps.Keys(real)), []string{p.Cwd}) {
		why[real[path]] = othersRun
	}
	for path, text := range p.Why {
		if name := why[path]; name != "" {
			text += "; " + name
		}
		why[path] = text
	}
	return why
}
