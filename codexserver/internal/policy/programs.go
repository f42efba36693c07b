package policy

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/lazyregexp"
)

// program is a program of which a rule may allow commands by their beginning.
type program struct {
	// never are options that start other programs, read other configuration, or work in
	// another folder. Not even the exact words of a command with one are proposed, in any
	// spelling that the program may accept: abbreviated, with a value, in another case, or, with
	// clusters, among other short options.
	never    string
	clusters bool
	// actions are by the word after the program; "" if there is none.
	actions map[string]*action
}

// action is a command of a program. A rule by its beginning allows only words that are
// known: options on the list, and operands of the pattern.
type action struct {
	options  *optionList
	operands *lazyregexp.Regexp // matches a whole operand; nil matches none
	// named is true if the first operand belongs to the beginning, as the script of npm run.
	named bool
	// outside is true if the action may be allowed outside the sandbox. What it depends on is
	// the Setup of [Unasked].
	outside bool
}

var (
	anyOperand = &lazyregexp.Regexp{Text: `^[^@-](?s:.*)$`} // @ is a file of options for some programs
	gitName    = &lazyregexp.Regexp{Text: `^[A-Za-z0-9_][A-Za-z0-9_./-]*$`}
	scriptName = &lazyregexp.Regexp{Text: `^[A-Za-z0-9_][A-Za-z0-9_.:-]*$`}
)

// proposable are the programs of which a rule may allow commands by their beginning. Outside
// the sandbox that is only git push: every other action runs files of the workspace, or
// starts what the configuration of a submodule names. Their options were read in the manuals
// of git 2.39, Go 1.26, npm 11, cargo 1.90 and pytest 8.4.
var proposable = map[string]*program{
	"git": {
		clusters: true,
		never: `-c -C -S -e -i -p -O --config --config-env --exec --exec-path --upload-pack --receive-pack --template --git-dir
			--work-tree --namespace --ext-diff --textconv --output --open-files-in-pager --strategy --trailer --edit --gpg-sign
			--signed --recurse-submodules --interactive --patch --server-option`,
		actions: map[string]*action{
			"add":    {options: &gitAddOptions, operands: anyOperand},
			"commit": {options: &gitCommitOptions, operands: anyOperand},
			"fetch":  {options: &gitFetchOptions, operands: gitName},
			"pull":   {options: &gitPullOptions, operands: gitName},
			"push":   {options: &gitPushOptions, operands: gitName, outside: true},
			"switch": {options: &gitSwitchOptions, operands: gitName},
		},
	},
	"go": {
		never: `-C -exec -toolexec -vettool -overlay -modfile -ldflags -gcflags -asmflags -gccgoflags -pkgdir`,
		actions: map[string]*action{
			"build": {options: &goOptions, operands: anyOperand},
			"test":  {options: &goOptions, operands: anyOperand},
			"vet":   {options: &goOptions, operands: anyOperand},
		},
	},
	"gofmt": {
		never:   `-cpuprofile`,
		actions: map[string]*action{"": {options: &gofmtOptions, operands: anyOperand}},
	},
	"npm": {
		clusters: true,
		never: `-C -c -g --prefix --script-shell --shell --node-options --userconfig --globalconfig --git --call --package --editor
			--viewer --browser --init-module --global --location --cache --node-gyp --registry`,
		actions: map[string]*action{
			"ci":      {options: &npmOptions},
			"install": {options: &npmOptions},
			"run":     {options: &npmOptions, operands: scriptName, named: true},
			"test":    {options: &npmOptions},
		},
	},
	"cargo": {
		clusters: true,
		never:    `-C -Z --config --manifest-path --target-dir --target --artifact-dir --out-dir --lockfile-path`,
		actions: map[string]*action{
			"build": {options: &cargoOptions, operands: anyOperand},
			"check": {options: &cargoOptions, operands: anyOperand},
			"test":  {options: &cargoOptions, operands: anyOperand},
		},
	},
	"pytest": {
		clusters: true,
		never: `-c -o -p --config-file --rootdir --override-ini --confcutdir --basetemp --pdbcls --import-mode --pyargs --trace --pdb
			--pastebin --debug`,
		actions: map[string]*action{"": {options: &pytestOptions, operands: anyOperand}},
	},
}

// The lists leave out, besides what never names, options that destroy work, publish more
// than the words before say, or write a file that they name: --force, --delete, --mirror
// and --prune of push, --amend and --no-verify of commit, --discard-changes of switch, -o of
// go, and the arguments for the programs that npm starts.
var (
	gitAddOptions    = optionList{short: `-[vnuA]+`, long: `-- --all --dry-run --ignore-errors --no-all --refresh --update --verbose`}
	gitCommitOptions = optionList{short: `-[aqsv]+|-[aqsv]*m`, long: `
		-- --all --allow-empty --dry-run --message[=] --no-status --quiet --short --signoff --status --verbose`}
	gitFetchOptions = optionList{short: `-[apqtv46]+`, long: `
		--all --append --atomic --depth= --dry-run --ipv4 --ipv6 --no-progress --no-recurse-submodules --no-tags --progress
		--prune --quiet --tags --verbose`}
	gitPullOptions = optionList{short: `-[pqtv46]+`, long: `
		--all --ff-only --ipv4 --ipv6 --no-progress --no-rebase --no-recurse-submodules --no-tags --progress --prune --quiet
		--tags --verbose`}
	gitPushOptions = optionList{short: `-[nquv46]+`, long: `
		--atomic --dry-run --follow-tags --ipv4 --ipv6 --no-progress --no-thin --porcelain --progress --quiet --set-upstream
		--tags --thin --verbose`}
	gitSwitchOptions = optionList{short: `-[dqt]+`, long: `--create --detach --no-progress --no-track --progress --quiet --track`}

	goOptions = optionList{short: `-[anpvx]`, long: `
		-asan -bench[=] -benchmem[=] -benchtime[=] -buildvcs[=] -count[=] -cover[=] -covermode[=] -coverpkg[=] -cpu[=]
		-failfast[=] -fullpath[=] -json[=] -list[=] -msan -p= -parallel[=] -race[=] -run[=] -short[=] -shuffle[=] -skip[=]
		-tags[=] -timeout[=] -trimpath[=] -v= -vet=off -work`}
	gofmtOptions = optionList{short: `-[delsw]`}
	npmOptions   = optionList{short: `-[sS]`, long: `
		--foreground-scripts --if-present --ignore-scripts --include= --no-audit --no-fund --no-progress --no-save
		--offline --omit= --prefer-offline --quiet --save --silent --verbose`}
	cargoOptions = optionList{short: `-[qrv]+|-[jpF]`, long: `
		-- --all --all-features --all-targets --benches --bin[=] --bins --color= --doc --example[=] --examples --exact
		--exclude[=] --features[=] --frozen --ignored --include-ignored --jobs[=] --keep-going --lib --locked
		--message-format= --no-default-features --no-fail-fast --no-run --nocapture --offline --package[=] --profile[=]
		--quiet --release --show-output --test[=] --test-threads[=] --tests --verbose --workspace`}
	pytestOptions = optionList{short: `-[lqsvx]+|-[km]|-r[a-zA-Z]+`, long: `
		--capture=no --co --collect-only --color= --disable-warnings --durations[=] --exitfirst --failed-first --ff
		--last-failed --lf --maxfail[=] --new-first --nf --no-header --no-summary --quiet --showlocals --stepwise --sw
		--tb[=] --verbose`}
)

// actionOf returns the action of a command, its beginning and the words after it; nil if the
// program is not proposable.
func actionOf(argv []string) (a *action, prefix, args []string) {
	p := proposable[argv[0]]
	if p == nil {
		return nil, nil, nil
	}
	n := 1
	if a = p.actions[""]; a == nil && len(argv) > 1 {
		a, n = p.actions[argv[1]], 2
	}
	if a != nil && a.named {
		if len(argv) == n || !a.operands.Get().MatchString(argv[n]) {
			return nil, nil, nil
		}
		n++
		return &action{options: a.options}, argv[:n], argv[n:]
	}
	return a, argv[:n], argv[n:]
}

// takes reports whether a rule may allow the action with any words like these.
func (a *action) takes(args []string) bool {
	for _, arg := range args {
		if !strings.HasPrefix(arg, "-") && (a.operands == nil || !a.operands.Get().MatchString(arg)) {
			return false
		}
	}
	return a.options.cover(wordsOf(args))
}

// mayRepeat returns why not even the exact words of a command may be allowed for later, or
// nil.
func mayRepeat(argv []string, dir string) error {
	name := programName(argv[0])
	p := proposable[name]
	switch {
	case strings.Contains(argv[0], "=") || argv[0] == "":
		return errors.New("it sets a variable")
	case LooksLikeShell(argv[0]):
		return errors.New("it is a script that is more than plain commands")
	case listed(wrappers, name), listed(wrappers, strings.TrimPrefix(name, "g")):
		return fmt.Errorf("%s starts what its arguments name", name)
	case listed(interpreters, name):
		if len(argv) < 2 || strings.HasPrefix(argv[1], "-") || !isFile(Place{Dir: dir}.absolute(argv[1])) {
			return fmt.Errorf("%s runs code that no file of the command has", name)
		}
	case p == nil:
	case name != argv[0]:
		return fmt.Errorf("only %s without a folder, in this spelling, is known", name)
	default:
		if a, _, _ := actionOf(argv); a == nil {
			return fmt.Errorf("this command of %s is not known", name)
		}
		if i := slices.IndexFunc(argv[1:], p.refuses); i >= 0 {
			return fmt.Errorf("%s has the option %q", name, argv[1+i])
		}
	}
	return nil
}

// refuses reports whether a word may be one of the options that the program must never get.
func (p *program) refuses(word string) bool {
	if !strings.HasPrefix(word, "-") {
		return false
	}
	long := strings.HasPrefix(word, "--")
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	name = strings.TrimPrefix(strings.ToLower(name), "no-")
	for option := range strings.FieldsSeq(p.never) {
		bad := strings.ToLower(strings.TrimLeft(option, "-"))
		switch {
		case name == "":
		case name == bad, long && strings.HasPrefix(bad, name):
			return true
		case !long && p.clusters && len(bad) == 1 && strings.Contains(name, bad):
			return true
		}
	}
	return false
}

// programName returns the name of a program as the most lenient system reads it, without its
// folder, ".exe" and a version.
func programName(program string) string {
	name := strings.ToLower(path.Base(strings.ReplaceAll(program, `\`, "/")))
	name = strings.TrimSuffix(name, ".exe")
	if short := strings.TrimRight(name, "0123456789.-"); short != "" {
		return short
	}
	return name
}

// listed reports whether a list has a word.
func listed(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// wrappers start what their arguments, their input or a file name, or run it as another user
// or later. Some systems put a g before the names of GNU programs.
const wrappers = `
	at abduco apptainer asdf awk batch busybox builtin bunx bwrap catchsegv chpst chroot chrt cmd command coreutils crontab
	daemonize dbus-run-session devbox docker doas dtach ed emacs enroot entr env eval ex exec expect faketime fakeroot faketty
	fd find firejail flock fnm gawk gdb gosu guix hyperfine ionice kubectl lldb ltrace mawk nawk newgrp
	nice nix nix-shell nohup npx nq nsenter nvim open osascript parallel perf pipx pkexec pnpx podman powershell proot
	proxychains pwsh pyenv rbenv rlwrap rr rsync run-parts runuser screen script scp sed setarch setpriv setsid sftp sg
	singularity socat softlimit source ssh start start-stop-daemon stdbuf strace su su-exec sudo systemd-run tar taskset time
	timeout tmux torify torsocks toybox trickle tsocks unbuffer unshare uvx valgrind vi view vim volta watch winpty wsl xargs
	xdg-open xvfb-run .`

// interpreters run the code in a file, or in their arguments and their input. Only a file may
// be allowed, because the rule knows its content.
const interpreters = `
	bun deno elixir erl groovy guile iex irb java jruby js julia jshell lua luajit node nodejs ocaml perl php pypy python pythonw
	r racket raku rscript ruby sbcl scala swift tclsh ts-node tsx wish`

// builders run what files of the workspace say, or start programs that its configuration
// names. Of them only exact words may be allowed, and only in the sandbox.
const builders = `
	ansible ansible-playbook ant bazel bazelisk buck buf bundle bzr clang-tidy cmake composer conda ctest direnv docker-compose
	dotnet eslint fossil flutter gh glab gmake golangci-lint gradle gradlew grunt gulp hatch helm hg hub invoke jest jj just
	lazygit lein lerna mage make meson mise mix mocha msbuild mvn mvnw ninja nmake nox nx packer pdm phpunit pip pipenv pixi
	pnpm poetry pre-commit prettier protoc pulumi pylint rake rebar rspec rubocop rustc rye sbt scons stack stylelint svn
	swiftc task terraform tig tofu tox tsc turbo uv vagrant vite vitest webpack xcodebuild yarn zig`
