package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// switches is the file that a mutated package gets. A child process of a test has the mutant
// too if it has the variable.
const switches = `package %s

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

var (
	zzActive, _ = strconv.Atoi(os.Getenv("MUTANT"))
	zzReached   = zzOpen()
	zzSeen      sync.Map
)

// zzOpen opens the file for the mutants that this process reaches, now: later the process may
// be confined.
func zzOpen() *os.File {
	dir := os.Getenv("MUTANT_REACHED")
	if dir == "" {
		return nil
	}
	f, _ := os.CreateTemp(dir, "")
	return f
}

func zzOn(id int) bool {
	if zzReached != nil {
		if _, seen := zzSeen.LoadOrStore(id, true); !seen {
			_, _ = fmt.Fprintln(zzReached, id)
		}
	}
	return zzActive == id
}

func zzOff(id int) bool { return zzActive != id }

func zzPick[T any](id int, code, other T) T {
	if zzOn(id) {
		return other
	}
	return code
}
`

// unit is a test, an example or the seeds of a fuzz test.
type unit struct {
	name    string
	reaches map[int]bool
	took    time.Duration
}

// test builds the package with its mutants and finds the fate of each. It prints the survivors
// that the list does not have, and the lines of the list that are not true any more.
func (p *pkg) test(ctx context.Context, parallel int, accepted *list) error {
	work, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	program, err := p.build(ctx, work)
	if err != nil {
		return err
	}
	units, err := p.baseline(ctx, program, work, parallel)
	if err != nil {
		return err
	}
	return each(ctx, parallel, p.mutants, func(m *mutant) error {
		m.fate = p.try(ctx, program, m.id, units)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		listed := accepted.has(m.name)
		switch {
		case m.fate == survived && !listed:
			fmt.Printf("SURVIVES %s (line %d)\n", m.name, m.line)
		case m.fate == unreached && !listed:
			fmt.Printf("UNREACHED %s (line %d)\n", m.name, m.line)
		case m.fate != survived && m.fate != unreached && listed:
			fmt.Printf("killed, but listed: %s\n", m.name)
		}
		return nil
	})
}

// each calls do for every item, so many at a time.
func each[T any](ctx context.Context, parallel int, items []T, do func(T) error) error {
	next := make(chan T)
	errs := make(chan error, parallel)
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for item := range next {
				if err := do(item); err != nil {
					select {
					case errs <- err:
					default:
					}
				}
			}
		})
	}
	for _, item := range items {
		if ctx.Err() != nil {
			break
		}
		next <- item
	}
	close(next)
	workers.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return ctx.Err()
	}
}

// build compiles the tests of the package with all mutants.
func (p *pkg) build(ctx context.Context, work string) (string, error) {
	replace := map[string]string{}
	add := func(file, text string) error {
		to := filepath.Join(work, strconv.Itoa(len(replace))+"_"+filepath.Base(file))
		replace[file] = to
		return os.WriteFile(to, []byte(text), 0o600)
	}
	if err := add(filepath.Join(p.dir, "zz_mutants.go"), fmt.Sprintf(switches, p.name)); err != nil {
		return "", err
	}
	for file, text := range p.files {
		if err := add(file, text); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(work, "overlay.json"), overlay, 0o600); err != nil {
		return "", err
	}
	program := filepath.Join(work, "tests")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", filepath.Join(work, "overlay.json"), "-o", program, ".")
	cmd.Dir = p.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return program, nil
}

// baseline runs each test without a mutant, and records which mutants it reaches and how long
// it takes. It leaves out tests that fail with the switches in the code, such as those that
// count allocations.
func (p *pkg) baseline(ctx context.Context, program, work string, parallel int) ([]*unit, error) {
	list := exec.CommandContext(ctx, program, "-test.list", "^(Test|Example|Fuzz)")
	list.Dir = p.dir
	names, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests: %w", err)
	}
	var units []*unit
	var mu sync.Mutex
	distinct := slices.Compact(slices.Sorted(strings.FieldsSeq(string(names)))) // both packages of a folder may have a name
	err = each(ctx, parallel, distinct, func(name string) error {
		u := &unit{name: name, reaches: map[int]bool{}}
		dir := filepath.Join(work, "reached_"+name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		start := time.Now()
		out, err := p.start(ctx, program, 10*time.Minute, []string{"MUTANT_REACHED=" + dir}, name)
		u.took = time.Since(start)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			last := out[max(0, len(out)-400):]
			fmt.Printf("   left out, fails without a mutant: %s %s: %v\n%s\n", p.path, name, err, last)
			return nil
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			ids, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			for field := range strings.FieldsSeq(string(ids)) {
				id, _ := strconv.Atoi(field)
				u.reaches[id] = true
			}
		}
		units = append(units, u)
		return nil
	})
	slices.SortFunc(units, func(a, b *unit) int { return int(a.took - b.took) })
	if err == nil && len(units) == 0 {
		err = errors.New("no test passes without a mutant")
	}
	return units, err
}

// groups divides the tests that reach a mutant. One process runs the tests of a group; each
// group may take four times as long as the one before, so the many mutants that any quick test
// notices cost little.
func groups(id int, units []*unit) (all [][]*unit) {
	var took time.Duration
	room := 50 * time.Millisecond
	for _, u := range units { // the quickest first
		if !u.reaches[id] {
			continue
		}
		if took += u.took; all == nil || took > room {
			all, took, room = append(all, nil), u.took, 4*room
		}
		all[len(all)-1] = append(all[len(all)-1], u)
	}
	return all
}

// try returns the fate of a mutant.
func (p *pkg) try(ctx context.Context, program string, id int, units []*unit) fate {
	fate := unreached
	for _, group := range groups(id, units) {
		fate = survived
		limit := 10 * time.Second
		var names []string
		for _, u := range group {
			limit += 3 * u.took
			names = append(names, u.name)
		}
		switch _, err := p.start(ctx, program, limit, []string{"MUTANT=" + strconv.Itoa(id)}, names...); {
		case errors.Is(err, context.DeadlineExceeded):
			return timedOut
		case err != nil:
			return killed
		}
	}
	return fate
}

// start runs tests of the program, small where they can be.
func (p *pkg) start(ctx context.Context, program string, limit time.Duration, env []string, names ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-test.short="+strconv.FormatBool(p.short), "-test.failfast", "-test.count=1", "-test.run", "^("+strings.Join(names, "|")+")$")
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 5 * time.Second // children may hold the output
	err := cmd.Run()
	if ctx.Err() != nil {
		return out.Bytes(), ctx.Err()
	}
	return out.Bytes(), err
}
