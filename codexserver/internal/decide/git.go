package decide

import (
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/lazyregexp"
)

// safeGit judges the words after git. Its own options, such as -C and -c, select repositories and configuration.
func safeGit(args []Word) bool {
	if len(args) == 0 {
		return false
	}
	command, args := args[0].Text, args[1:]
	known := map[string]*lazyregexp.Regexp{
		"status": &gitStatusOptions, "diff": &gitDiffOptions, "log": &gitLogOptions, "show": &gitLogOptions,
		"branch": &gitBranchOptions,
	}[command]
	operand := slices.ContainsFunc(args, func(w Word) bool { return !strings.HasPrefix(w.Text, "-") })
	return known != nil && covers(known, args) && (command != "branch" || !operand || slices.ContainsFunc(args, lists))
}

var gitStatusOptions = lazyregexp.Regexp{Text: `^(?:-[sbvz]+|-u(?:no|normal|all)?|--|--(?:ahead-behind|branch|` +
	`ignored|long|no-renames|porcelain|short|` +
	`show-stash|untracked-files|verbose)(?:=.*)?)$`}

// The options of git diff leave out --output, which writes, --ext-diff and --textconv, which start programs that the
// configuration names, --no-index, which leaves the repository, and -O, which names a file.
const diffOptions = `-[pusRzawbWc]|-[UMC][0-9]*%?|-[SG].*|--|--(?:abbrev|binary|cached|check|color|color-moved|` +
	`diff-filter|exit-code|find-renames|` +
	`full-index|function-context|histogram|ignore-all-space|ignore-blank-lines|ignore-space-at-eol|` +
	`ignore-space-change|merge-base|minimal|name-only|` +
	`name-status|no-color|no-ext-diff|no-patch|no-prefix|no-renames|no-textconv|numstat|patch|patch-with-stat|` +
	`patience|pickaxe-regex|quiet|raw|` +
	`shortstat|staged|stat|summary|text|unified|word-diff)(?:=.*)?`

var gitDiffOptions = lazyregexp.Regexp{Text: `^(?:` + diffOptions + `)$`}

// The options of git log also leave out --show-signature, which starts gpg, --remerge-diff,
// which merges again, --alternate-refs, which starts git for other repositories, and
// --stdin. A format is one of git's own or has only plain placeholders: another name comes from the
// configuration, and %G starts gpg. %% is none, because git does not read it as one percent sign everywhere.
var gitLogOptions = lazyregexp.Regexp{Text: `^(?:` + diffOptions +
	`|-[0-9]+|-n[0-9]*|-[tmriEFPgq]|-L.*|--(?:abbrev-commit|after|all|author|before|` +
	`branches|cherry-pick|committer|date|date-order|decorate|extended-regexp|first-parent|fixed-strings|follow|` +
	`full-history|graph|grep|left-right|` +
	`max-count|merges|no-decorate|no-merges|oneline|parents|perl-regexp|regexp-ignore-case|relative-date|remotes|` +
	`reverse|simplify-by-decoration|since|` +
	`skip|source|tags|topo-order|until)(?:=.*)?|--(?:format|pretty)=` + logFormat + `)$`}

const logFormat = `(?:oneline|short|medium|full|fuller|reference|email|raw|t?format:(?:[^%]|` + placeholder +
	`)*|[^%:]*` + placeholder + `(?:[^%]|` + placeholder + `)*)?`

const placeholder = `%(?:[HhTtPpDdsfbBen]|[ac][nNeEdDrtiIs]|x[0-9a-fA-F]{2}|C(?:red|green|blue|yellow|reset|\([a-z, ` +
	`]+\)))`

// The options of git branch list branches. A field of a branch that is named here starts no program.
var gitBranchOptions = lazyregexp.Regexp{Text: `^(?:-[arvi]+|--(?:abbrev|all|color|contains|ignore-case|list|merged|` +
	`no-abbrev|no-color|no-column|` +
	`no-contains|no-merged|points-at|remotes|show-current|verbose)(?:=.*)?|--sort=-?(?:v(?:ersion)?:)?` + branchField +
	`|--format=(?:[^%]|%\(` + branchField + `\))*)$`}

const branchField = `(?:HEAD|author(?:name|email|date)?|committer(?:name|email|date)?|creatordate|objectname|refname|` +
	`subject|upstream)(?::[a-z0-9=-]+)?`

// lists reports whether an option makes git branch list branches. Without one an operand is the name
// of a new branch. Of the known options only these take the next word as their value.
func lists(w Word) bool {
	name, _, _ := strings.Cut(w.Text, "=")
	return slices.Contains([]string{"--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"},
		name)
}
