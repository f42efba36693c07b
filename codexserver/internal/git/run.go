package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/internal/shellword"
)

// readLimit is how long git may take for all but a checkout. It could wait for a special file.
const readLimit = time.Minute

// maxOutput is how many bytes git may print.
const maxOutput = 64 << 20

// Scratch says where git works for the server, and keeps it from programs that commands
// have written.
type Scratch struct {
	// Dir is a folder for temporary files. It is created if it is missing. Only trusted
	// programs may write to it.
	Dir string
	// Programs finds git. By default no folders count as writable by commands, except those
	// of each call and those for temporary files.
	Programs *box.Programs
}

// program is git and its environment. See [Scratch.find].
type program struct {
	binary   string   // its absolute path
	env      []string // made when git first runs
	programs *box.Programs
}

// call is a call of git.
type call struct {
	dir      string
	env      []string // added to the environment
	tree     string   // a working tree in the mirror in place of the repository's
	bare     bool     // that is none, so git looks for attributes in no folder
	confined *box.Confinement
	options  []string // before the command, such as "-c" and a setting
	stdin    string
	differs  bool          // its exit code may be 1, as that of diff
	differed *bool         // set if it is, unless nil
	cut      int           // how many bytes of the output to return; 0 is up to 64 MiB, or an error
	limit    time.Duration // how long it may take; 0 is [readLimit]
}

// fixed are the variables of each call. Git does not prompt, does not use the network, takes no
// lock, and fetches nothing that is missing.
var fixed = []string{
	"GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none",
	"GIT_NO_REPLACE_OBJECTS=1",
	"GIT_LITERAL_PATHSPECS=1", "GIT_EDITOR=false", "GIT_PAGER=cat", "LC_ALL=C",
	// glibc's: else git's heap shrinks and grows with each file
	"MALLOC_TOP_PAD_=4194304", "MALLOC_TRIM_THRESHOLD_=67108864",
}

// run runs git confined and returns what it prints. Git runs no hook and no monitor.
//
// The error is a [*box.ProgramError] if a command could have written git.
func (p *program) run(ctx context.Context, c call, args ...string) (string, error) {
	name, limit := args[0], cmp.Or(c.limit, readLimit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("git %s takes longer than %v", name, limit))
	defer cancel()
	args = slices.Concat([]string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull}, c.options, args)
	cmd := exec.CommandContext(ctx, p.binary, args...)
	cmd.Dir = c.dir
	cmd.Env = slices.Concat(p.environ(), fixed, c.env)
	cmd.WaitDelay = time.Second
	cmd.Stdin = strings.NewReader(c.stdin)
	out, errs := &boundedBuffer{max: cmp.Or(c.cut, maxOutput)}, &boundedBuffer{max: 64 << 10}
	cmd.Stdout, cmd.Stderr = out, errs
	err := p.programs.Start(cmd, func() error { return c.confined.Start(cmd) })
	if err == nil {
		err = cmd.Wait()
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	var exit *exec.ExitError
	differed := c.differs && errors.As(err, &exit) && exit.ExitCode() == 1
	if c.differed != nil {
		*c.differed = differed
	}
	switch {
	case out.full && c.cut > 0, differed:
		err = nil
	case out.full:
		return "", fmt.Errorf("git %s prints more than %d MiB", name, maxOutput>>20)
	case errors.As(err, &exit):
		said, _, _ := strings.Cut(strings.TrimSpace(errs.kept.String()), "\n")
		if dir, is := foreign(said); is {
			return "", fmt.Errorf("git %s: the repository belongs to another user; if you trust it, "+
				"run git config --global --add safe.directory %s", name, shellword.Show(runtime.GOOS, dir))
		}
		return "", fmt.Errorf("git %s: %w: %s", name, err, said)
	}
	return out.kept.String(), err
}

// foreign returns the folder of which git says that it belongs to another user: of a repository that it therefore does
// not read.
func foreign(said string) (dir string, is bool) {
	if !strings.Contains(said, "detected dubious ownership in repository at '") {
		return "", false
	}
	_, dir, _ = strings.Cut(said, "'")
	return strings.TrimSuffix(dir, "'"), true
}

// boundedBuffer keeps at most max bytes and refuses more. It does not embed the buffer,
// whose ReadFrom has no limit.
type boundedBuffer struct {
	kept bytes.Buffer
	max  int
	full bool
}

// Write implements [io.Writer].
func (b *boundedBuffer) Write(p []byte) (int, error) {
	if left := b.max - b.kept.Len(); len(p) > left {
		b.full = true
		n, _ := b.kept.Write(p[:left])
		return n, errors.New("too much output")
	}
	return b.kept.Write(p)
}

// variables are those that git gets. Commands get more.
var variables = []string{"HOME", "XDG_CONFIG_HOME", "TMPDIR", "DEVELOPER_DIR", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM",
	"GIT_CONFIG_NOSYSTEM"}

// withoutUser is the environment that keeps git from reading the user's and the system's
// configuration and attributes.
var withoutUser = []string{"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_SYSTEM=" + os.DevNull,
	"GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1"}

// find returns git for the working trees at roots. It ignores programs in the roots, in
// folders that commands can write and in those for temporary files, because git could come
// from the repository or from a command.
func (s Scratch) find(roots ...string) (program, error) {
	programs := cmp.Or(s.Programs, &box.Programs{})
	programs.Given(roots...)
	binary, err := programs.Find("git", "", os.Getenv("PATH"))
	if err != nil {
		return program{}, fmt.Errorf("git: %w", err)
	}
	return program{binary: binary, programs: programs}, nil
}

// environ returns the environment of git. Its PATH has no folder that commands can write.
func (p *program) environ() []string {
	if p.env == nil {
		p.env, _ = p.programs.Environ([]string{"PATH=" + os.Getenv("PATH")})
		for _, name := range variables {
			if value, ok := os.LookupEnv(name); ok {
				p.env = append(p.env, name+"="+value)
			}
		}
	}
	return p.env
}
