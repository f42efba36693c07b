package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// work is what clients do while it is timed.
type work struct {
	what, prompt  string
	calls, atOnce int
}

// first is the prompt of the first calls of all but the first user, each in a session of its own.
const first = "first"

// works returns the works of the part calls. The first three are also done in each state.
func (z size) works() []work {
	return []work{
		{"`ping`", "", 5 * z.calls, 1},
		{"`codex`", "say", z.calls, 1},
		{"a stream", "stream", max(z.calls/6, 1), 1},
		{"`codex` with an approval", "ask", z.calls, 1},
		{fmt.Sprintf("`codex`, %d users at once", together), "say", max(z.calls, together), together},
		{fmt.Sprintf("a stream, %d users at once", together), "stream", together, together},
	}
}

// figure is a value of what it says.
type figure struct {
	what  string
	value float64
}

// do does the work once, and returns its figures, the most important one first. A client does one
// call after another.
func (s *service) do(ctx context.Context, w work) ([]figure, error) {
	before := s.cost()
	took, errs, events := make([]float64, w.calls), make([]error, w.calls), make([]int, w.calls)
	var working sync.WaitGroup
	began := time.Now()
	for client := range w.atOnce {
		working.Go(func() {
			for i := client; i < w.calls; i += w.atOnce {
				began := time.Now()
				if w.prompt == first {
					errs[i] = s.use(ctx, s.users[1+i], "say", nil)
				} else {
					events[i], errs[i] = s.clients[client].do(ctx, w.prompt, nil)
				}
				took[i] = time.Since(began).Seconds() * 1e3
			}
		})
	}
	working.Wait()
	lasted := time.Since(began).Seconds()
	cpu := s.cost().cpu - before.cpu
	if err := cmp.Or(errs...); err != nil {
		return nil, fmt.Errorf("%s: %w", w.what, err)
	}
	if w.prompt == "stream" {
		n := 0.0
		for _, of := range events {
			n += float64(of)
		}
		return []figure{{"events/s", n / lasted}, {"CPU of an event, µs", cpu / n * 1e6}}, nil
	}
	return []figure{{"p50, ms", quantile(took, 0.5)}, {"p99, ms", quantile(took, 0.99)}, {"CPU, ms", cpu / float64(w.calls) * 1e3}}, nil
}

// add does a work, and adds its figures to the table.
func (s *service) add(ctx context.Context, w work) error {
	figures, err := s.do(ctx, w)
	for _, f := range figures {
		s.lab.table.add(s.name, w.what+": "+f.what, f.value)
	}
	return err
}

// calls measures calls, one service after another in each round.
func (l *lab) calls(ctx context.Context) (err error) {
	var all []*service
	defer func() {
		for _, s := range all {
			err = errors.Join(err, s.close())
		}
	}()
	for _, nodes := range append(slices.Clone(l.size.nodes), plain) {
		s, err := l.start(ctx, nodes, together, together, "1h")
		all = append(all, s)
		if err != nil {
			return err
		}
	}
	for range l.size.rounds {
		for _, w := range l.size.works() {
			for _, s := range all {
				if err := s.add(ctx, w); err != nil {
					return fmt.Errorf("%s: %w", s.name, err)
				}
			}
		}
	}
	return nil
}

// crowd measures each service with one user, and then with others after their first calls.
func (l *lab) crowd(ctx context.Context, others int, workerIdle string, measure func(*service) error) error {
	for _, nodes := range l.size.nodes {
		s, err := l.start(ctx, nodes, 1+others, 1, workerIdle)
		if err == nil {
			err = s.observe(ctx, "")
		}
		if err == nil && nodes != direct {
			stored := s.stored()
			calls := work{fmt.Sprintf("first calls of %d users", others), first, others, 4}
			if err = s.add(ctx, calls); err == nil {
				l.table.add(s.name, calls.what+": KiB of each on a NATS server", (s.stored()-stored)/float64(others))
				err = measure(s)
			}
		}
		if err = errors.Join(err, s.close()); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// observe adds the figures of a state: what each of the other users takes, and what the first one
// gets meanwhile. The state "" is the service with its first user.
func (s *service) observe(ctx context.Context, state string) error {
	lasts := s.lab.size.lasts
	time.Sleep(lasts / 2) // what began the state has ended
	if err := s.observeWrites(ctx, state); err != nil {
		return err
	}
	before, began := s.cost(), time.Now()
	time.Sleep(lasts)
	now := s.cost()
	figures := []figure{{"MiB", now.memory()}, {"CPU, ms/s", (now.cpu - before.cpu) / time.Since(began).Seconds() * 1e3}, {"processes", float64(len(now.processes))}}
	for _, w := range s.lab.size.works()[:3] {
		of, err := s.do(ctx, w)
		if err != nil {
			return err
		}
		figures = append(figures, figure{w.what + ", " + of[0].what, of[0].value})
	}
	if state == "" {
		s.lab.table.add(s.name, s.one+"start of the last program, ms", s.started.Seconds()*1e3)
	}
	others := len(s.users) - 1
	for i, f := range figures {
		alone := s.lab.table.value(s.name, s.one+f.what)
		switch row := fmt.Sprintf("%d %s: %s", others, state, f.what); {
		case state == "":
			s.lab.table.add(s.name, s.one+f.what, f.value)
		case i < 3:
			s.lab.table.add(s.name, row+" of each", (f.value-alone)/float64(others))
		default:
			s.lab.table.add(s.name, row+" of another user ÷ the same with one user", f.value/alone)
		}
	}
	return nil
}

// observeWrites adds how many messages a cluster stores in a state.
func (s *service) observeWrites(ctx context.Context, state string) error {
	if s.store == "" {
		return nil
	}
	before, err := s.written(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	time.Sleep(4 * s.lab.size.lasts) // longer than a lease
	now, err := s.written(ctx)
	row := s.one
	if state != "" {
		row = fmt.Sprintf("%d %s: ", len(s.users)-1, state)
	}
	s.lab.table.add(s.name, row+"NATS writes per second", float64(now-before)/time.Since(began).Seconds())
	return err
}

// workers measures users whose workers are idle.
func (l *lab) workers(ctx context.Context) error {
	return l.crowd(ctx, l.size.busy, "1h", func(s *service) error {
		return errors.Join(s.spread(), s.observe(ctx, "workers idle"))
	})
}

// states measures users whose workers are idle, or whose turns wait.
func (l *lab) states(ctx context.Context) error {
	return l.crowd(ctx, l.size.busy, "1h", func(s *service) error {
		return errors.Join(s.spread(), s.observe(ctx, "workers idle"), s.turns(ctx, "wait", "wait for the model"), s.turns(ctx, "ask", "wait for an approval"))
	})
}

// idle measures users whose workers have ended.
func (l *lab) idle(ctx context.Context) error {
	return l.crowd(ctx, l.size.idle, "1s", func(s *service) error {
		one := s.lab.table.value(s.name, s.one+"processes")
		if err := until(ctx, func() bool { return float64(len(s.cost().processes)) == one }); err != nil {
			return fmt.Errorf("the workers do not end: %w", err)
		}
		time.Sleep(2 * l.size.lasts) // the nodes give back the leases
		return s.observe(ctx, "without a worker")
	})
}

// spread fails unless each node has at least half of its share of the workers.
func (s *service) spread() error {
	processes := make([]int, len(s.all))
	for _, program := range s.cost().processes {
		processes[program]++
	}
	if s.nodes > 0 && slices.Min(processes[3:3+s.nodes]) <= len(s.users)/s.nodes { // a worker has two
		return fmt.Errorf("the nodes do not share the users: the programs have these processes: %v", processes)
	}
	return nil
}

// turns begins a turn of each other user, and observes the state in which all of them wait. One
// after another begins and ends, because a machine that is too busy is not what is measured.
func (s *service) turns(ctx context.Context, prompt, state string) error {
	others := s.users[1:]
	begun, held, ended := make(chan struct{}, 2*len(others)), make(chan struct{}), make(chan error, len(others))
	defer close(held) // for a model whose client has gone
	hold := func() {
		begun <- struct{}{}
		<-held
	}
	s.lab.script(hold)
	for _, u := range others {
		go func() {
			err := s.use(ctx, u, prompt, hold)
			begun <- struct{}{} // it may not have called hold
			ended <- err
		}()
		<-begun
	}
	err := s.observe(ctx, state)
	for range others {
		select {
		case held <- struct{}{}:
			err = errors.Join(err, <-ended)
		case failed := <-ended:
			err = errors.Join(err, cmp.Or(failed, errors.New("a turn did not wait")))
		}
	}
	return err
}
