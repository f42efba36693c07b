// Command mutate changes packages in small ways, one at a time, and checks that the tests of
// the package itself notice each change:
//
//	go build -C test/mutate -o /tmp/mutate && /tmp/mutate ./elicit ./codexserver/internal/board
//
// A change that no test notices survives. survivors.txt has the reason why each survivor may
// stay; a survivor without a reason fails. No reason exists for a survivor that turns a denial
// into an approval: it needs a test.
//
// All mutants of a package are compiled into one test program, which reads from a variable of
// the environment which of them to apply. So a mutant costs a run of the tests that reach it,
// and no build.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"time"
)

// survivors has the accepted survivors with their reasons.
//
//go:embed survivors.txt
var survivors string

func main() {
	parallel := flag.Int("parallel", 2, "run the tests of so many mutants at a time")
	only := flag.String("only", "", "run only mutants whose name matches this `pattern`")
	unlisted := flag.Bool("unlisted", false, "run only mutants that survivors.txt does not have")
	open := flag.Int("open", 0, "accept so many survivors without a reason")
	short := flag.Bool("short", false, "run the tests small where they can be")
	more := flag.Bool("more", false, "also double limits and times, and lose errors: survivors.txt does not have those")
	list := flag.Bool("list", false, "list the mutants and run nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, flag.Args(), *parallel, *open, *only, *list, *unlisted, *short, *more)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, patterns []string, parallel, accepts int, only string, names, unlisted, short, more bool) error {
	accepted, err := parseList(survivors)
	if err != nil {
		return err
	}
	wanted, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	packages, err := load(patterns, more)
	if err != nil {
		return err
	}
	open := 0
	for _, p := range packages {
		p.mutants = slices.DeleteFunc(p.mutants, func(m *mutant) bool {
			return !wanted.MatchString(m.name) || unlisted && accepted.has(m.name)
		})
		if names {
			for _, m := range p.mutants {
				fmt.Println(m.name)
			}
			continue
		}
		start := time.Now()
		p.short = short
		if err := p.test(ctx, parallel, accepted); err != nil {
			return fmt.Errorf("%s: %w", p.path, err)
		}
		open += p.unlisted(accepted)
		fmt.Printf("   %s in %v\n", p.score(), time.Since(start).Round(time.Second))
	}
	if open > accepts {
		return fmt.Errorf("%d survivors have no reason in test/mutate/survivors.txt", open)
	}
	if !names && only == "" && !unlisted && open < accepts {
		fmt.Printf("only %d survivors have no reason: lower -open to that\n", open)
	}
	return nil
}

// unlisted counts the survivors that the list does not have.
func (p *pkg) unlisted(accepted *list) (n int) {
	for _, m := range p.mutants {
		if (m.fate == survived || m.fate == unreached) && !accepted.has(m.name) {
			n++
		}
	}
	return n
}

// score counts the mutants by their fate.
func (p *pkg) score() string {
	var n [fates]int
	for _, m := range p.mutants {
		n[m.fate]++
	}
	dead, all := n[killed]+n[timedOut], len(p.mutants)
	return fmt.Sprintf("%s: %d mutants, %d killed (%d by time), %d survived, %d unreached: %.1f %%",
		p.path, all, dead, n[timedOut], n[survived], n[unreached], 100*float64(dead)/float64(max(all, 1)))
}
