package policy

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// ProposePatch returns the rule that the question about a patch may offer: its folder, if the
// patch only adds and changes source code and texts in the repository. It returns false if
// there is none.
func ProposePatch(q *protocol.PatchApprovalRequest) (Proposal, bool) {
	p, err := ExplainPatch(q)
	return p, err == nil
}

// ExplainPatch is [ProposePatch] with the reason why there is no proposal.
func ExplainPatch(q *protocol.PatchApprovalRequest) (Proposal, error) {
	dir, err := filepath.EvalSymlinks(q.Cwd)
	switch {
	case !q.Placed || len(q.Changes) == 0:
		return Proposal{}, errors.New("the engine does not say which files it writes")
	case len(q.Links) > 0 || len(q.Notes) > 0:
		return Proposal{}, errors.New("it writes through a link")
	case err != nil || !filepath.IsAbs(dir):
		return Proposal{}, errors.New("its folder is not found")
	}
	repository := repositoryOf(dir)
	folder := ""
	for _, path := range slices.Sorted(maps.Keys(q.Changes)) {
		change := q.Changes[path]
		if change.Delete != nil || change.Update != nil && change.Update.MovePath != nil || change.Add == nil && change.Update == nil {
			return Proposal{}, fmt.Errorf("it removes or moves %s", path)
		}
		if err := isOrdinary(path, repository); err != nil {
			return Proposal{}, fmt.Errorf("%s: %w", path, err)
		}
		if folder == "" {
			folder = filepath.Dir(path)
		}
		for !below(path, folder) {
			folder = filepath.Dir(folder)
		}
	}
	return newProposal(Rule{Patches: folder, Folder: repository})
}

// PatchCovers is [Covers] for a patch.
func PatchCovers(rules []Rule, q *protocol.PatchApprovalRequest) bool {
	if len(rules) == 0 {
		return false
	}
	p, ok := ProposePatch(q)
	return ok && slices.ContainsFunc(rules, func(r Rule) bool { return r.covers(p.Rule) })
}

// isOrdinary returns nil if a rule may allow patches of a file: it lies in the repository, has
// the name of source code or of a text, and is nothing that a program runs or reads as its
// configuration.
func isOrdinary(path, repository string) error {
	rel, err := filepath.Rel(repository, path)
	if err != nil || !filepath.IsLocal(rel) || filepath.Clean(path) != path {
		return errors.New("it is outside the repository")
	}
	if own := repositoryOf(filepath.Dir(path)); own != repository && exists(filepath.Join(own, ".git")) {
		return errors.New("it is in another repository")
	}
	names := strings.Split(filepath.ToSlash(rel), "/")
	for _, name := range names {
		strange := strings.ContainsFunc(name, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-+.@ ", r)
		})
		if strange || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") || strings.HasSuffix(name, " ") {
			return errors.New("it is hidden, or has an unusual name")
		}
		if listed(specialFolders, strings.ToLower(name)) {
			return fmt.Errorf("%s is for hooks, CI, installed packages or tools", name)
		}
	}
	name := strings.ToLower(names[len(names)-1])
	if !listed(ordinaryEndings, filepath.Ext(name)) {
		return errors.New("it has not the name of source code or of a text")
	}
	stem := strings.TrimSuffix(name, filepath.Ext(name))
	if listed(specialFiles, name) || listed(specialEndings, filepath.Ext(stem)) || strings.HasPrefix(name, "requirements") || strings.HasSuffix(stem, "file") {
		return errors.New("it is configuration, or instructions for tools")
	}
	if info, err := os.Lstat(path); err == nil && (!info.Mode().IsRegular() || info.Mode()&0o111 != 0) {
		return errors.New("it is a program, or no ordinary file")
	}
	return nil
}

// The lists of names of files, in lower case.
const (
	ordinaryEndings = `
		.adoc .c .cc .cpp .cs .css .csv .cxx .dart .elm .erl .ex .f90 .fs .go .h .hpp .hs .htm .html .java .jl .js .jsx .kt .less
		.lua .m .md .mjs .ml .mm .php .pl .proto .py .r .rb .rs .rst .scala .scss .sql .svelte .svg .swift .tex .ts .tsx .txt
		.vb .vue .zig`
	specialFolders = `
		__pypackages__ admin bin buildsrc ci circleci deploy deployment deployments githooks git-hooks hooks husky infra jenkins
		node_modules ops pipelines scripts site-packages terraform tools vendor venv workflows`
	specialFiles = `
		agents.md build.rs claude.md cmakelists.txt codex.md configure.py conftest.py copilot-instructions.md fabfile.py
		gemini.md manage.py noxfile.py package.js pnpmfile.cjs robots.txt setup.py sitecustomize.py skill.md tasks.py
		usercustomize.py wscript.py`
	// specialEndings are endings before the last, as in vite.config.ts.
	specialEndings = `.conf .config .rc .setup .settings .workspace`
)
