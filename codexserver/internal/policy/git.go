package policy

import (
	"strings"

	"github.com/codexmcp/codexmcp/internal/lazyregexp"
)

// safeGit judges the words after git. It knows none of git's own options, such as -C and
// -c, because they select another repository or set its configuration.
func safeGit(args []Word) bool {
	if len(args) == 0 {
		return false
	}
	command, args := args[0].Text, args[1:]
	switch command {
	case "status":
		return gitStatusOptions.cover(args)
	case "diff":
		return gitDiffOptions.cover(args)
	case "log", "show":
		return gitLogOptions.cover(args) && knownFormats(args, "--pretty=", "--format=")
	case "branch":
		return gitBranchOptions.cover(args) && (!hasOperand(args) || lists(args)) && knownAtoms(args)
	}
	return false
}

var gitStatusOptions = optionList{short: `-[sbvz]+|-u(?:no|normal|all)?`, long: `
	-- --ahead-behind --branch --find-renames[=] --ignore-submodules[=] --ignored[=] --long --no-ahead-behind --no-column
	--no-renames --null --porcelain[=] --renames --short --show-stash --untracked-files[=] --verbose`}

// The list of git diff leaves out --output, which writes, --ext-diff and --textconv, which
// start programs that the configuration names, --no-index, which leaves the repository,
// and -O, which names a file.
const (
	diffShort = `-[pusRzawbWc0123]|-[UMCBDl][0-9]*%?|-[SG].*`
	diffLong  = `
	-- --abbrev[=] --anchored= --base --binary --break-rewrites[=] --cached --cc --check --color[=] --color-moved[=]
	--color-moved-ws= --color-words[=] --combined-all-paths --compact-summary --cumulative --dd --diff-algorithm=
	--diff-filter[=] --diff-merges=off --diff-merges=none --diff-merges=on --diff-merges=first-parent --diff-merges=1
	--diff-merges=separate --diff-merges=m --diff-merges=combined --diff-merges=c --diff-merges=dense-combined
	--diff-merges=cc --dirstat[=] --dirstat-by-file[=] --dst-prefix= --exit-code --find-copies[=] --find-copies-harder
	--find-object= --find-renames[=] --full-index --function-context --histogram --ignore-all-space --ignore-blank-lines
	--ignore-cr-at-eol --ignore-matching-lines= --ignore-space-at-eol --ignore-space-change --ignore-submodules[=]
	--indent-heuristic --inter-hunk-context= --irreversible-delete --ita-invisible-in-index --ita-visible-in-index
	--line-prefix= --merge-base --minimal --name-only --name-status --no-abbrev --no-color --no-color-moved
	--no-diff-merges --no-ext-diff --no-indent-heuristic --no-patch --no-prefix --no-relative --no-rename-empty
	--no-renames --no-textconv --numstat --ours --patch --patch-with-raw --patch-with-stat --patience --pickaxe-all
	--pickaxe-regex --quiet --raw --relative[=] --rename-empty --rotate-to= --shortstat --skip-to= --src-prefix= --staged
	--stat[=] --stat-count= --stat-graph-width= --stat-name-width= --stat-width= --submodule[=] --summary --text --theirs
	--unified= --word-diff[=] --word-diff-regex= --ws-error-highlight=`
)

var gitDiffOptions = optionList{short: diffShort, long: diffLong}

// The list of git log also leaves out --show-signature, which starts gpg, --remerge-diff,
// which merges again, --alternate-refs, which starts git for other repositories, and
// --stdin.
var gitLogOptions = optionList{short: diffShort + `|-[0-9]+|-n[0-9]*|-[tmriEFPgq]|-L.*`, long: diffLong + `
	--abbrev-commit --after[=] --all --all-match --ancestry-path[=] --author[=] --author-date-order --basic-regexp
	--before[=] --boundary --branches[=] --cherry --cherry-mark --cherry-pick --children --clear-decorations
	--committer[=] --date[=] --date-order --decorate[=] --decorate-refs= --decorate-refs-exclude= --dense --encoding=
	--exclude= --expand-tabs[=] --extended-regexp --first-parent --fixed-strings --follow --format= --full-diff
	--full-history --glob= --graph --grep[=] --grep-reflog= --ignore-missing --invert-grep --left-only --left-right
	--log-size --mailmap --max-count[=] --max-parents= --merge --merges --min-parents= --no-abbrev-commit --no-decorate
	--no-expand-tabs --no-graph --no-mailmap --no-max-parents --no-merges --no-min-parents --no-notes --no-show-signature
	--no-walk[=] --not --notes[=] --oneline --parents --perl-regexp --pretty[=] --regexp-ignore-case --relative-date
	--remotes[=] --remove-empty --reverse --right-only --show-linear-break[=] --show-pulls --simplify-by-decoration
	--simplify-merges --since[=] --since-as-filter= --single-worktree --skip[=] --source --sparse --tags[=] --topo-order
	--until[=] --use-mailmap --walk-reflogs`}

// gitBranchOptions are the options for listing branches.
var gitBranchOptions = optionList{short: `-[arvi]+`, long: `
	-- --abbrev[=] --all --color[=] --contains[=] --format= --ignore-case --list --merged[=] --no-abbrev --no-color
	--no-column --no-contains[=] --no-merged[=] --points-at= --remotes --show-current --sort= --verbose`}

func hasOperand(args []Word) bool {
	for _, a := range args {
		if !strings.HasPrefix(a.Text, "-") {
			return true
		}
	}
	return false
}

// lists reports whether git branch has an option that makes it list branches. Without one
// an operand is the name of a new branch. Of the known options only these take the next
// word as their value.
func lists(args []Word) bool {
	for _, a := range args {
		name, _, _ := strings.Cut(a.Text, "=")
		switch name {
		case "--":
			return false
		case "--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at":
			return true
		}
	}
	return false
}

var (
	// placeholder matches what may follow a percent sign in a format of git log.
	placeholder = lazyregexp.Regexp{Text: `^(?:%|[-+ ]?(?:[nHhTtPpdDsfbBeNSmwCx<>|]|[ac][nNeElLdDrtiIsh]|g[dDnNeEs]|\((?:trailers|decorate)[:)]))`}
	// signature matches a placeholder that makes git start gpg. It is searched in the whole
	// format, because git does not read %% as one percent sign everywhere.
	signature = lazyregexp.Regexp{Text: `%[-+ ]?G`}
)

// knownFormats judges the format in each of the named options.
func knownFormats(args []Word, names ...string) bool {
	for _, a := range args {
		for _, name := range names {
			format, ok := strings.CutPrefix(a.Text, name)
			if ok && !knownFormat(format) {
				return false
			}
		}
	}
	return true
}

func knownFormat(format string) bool {
	switch format {
	case "oneline", "short", "medium", "full", "fuller", "reference", "email", "mboxrd", "raw", "":
		return true
	}
	if !strings.HasPrefix(format, "format:") && !strings.HasPrefix(format, "tformat:") && !strings.Contains(format, "%") {
		return false // a name from the configuration
	}
	if signature.Get().MatchString(format) {
		return false
	}
	for {
		_, after, found := strings.Cut(format, "%")
		if !found {
			return true
		}
		loc := placeholder.Get().FindStringIndex(after)
		if loc == nil {
			return false
		}
		format = after[loc[1]:]
	}
}

// atom matches a field of a branch for which git starts no other program. The signature
// is not one, because it starts gpg.
var atom = lazyregexp.Regexp{Text: `^\*?(?:HEAD|align|author(?:name|email|date)?|body|color|committer(?:name|email|date)?|contents|creator(?:date)?|` +
	`else|end|if|numparent|object(?:name|type|size)|parent|push|refname|subject|symref|then|trailers|tree|upstream|worktreepath|ahead-behind)(?::[^()]*)?$`}

// knownAtoms judges the fields in the options --sort and --format.
func knownAtoms(args []Word) bool {
	for _, a := range args {
		if key, ok := strings.CutPrefix(a.Text, "--sort="); ok && !knownSortKey(key) {
			return false
		}
		format, ok := strings.CutPrefix(a.Text, "--format=")
		for ok {
			var found bool
			if _, format, found = strings.Cut(format, "%("); !found {
				break
			}
			name, rest, closed := strings.Cut(format, ")")
			if !closed || !atom.Get().MatchString(name) {
				return false
			}
			format = rest
		}
	}
	return true
}

func knownSortKey(key string) bool {
	key = strings.TrimPrefix(key, "-")
	for _, prefix := range []string{"version:", "v:"} {
		key = strings.TrimPrefix(key, prefix)
	}
	return atom.Get().MatchString(key)
}
