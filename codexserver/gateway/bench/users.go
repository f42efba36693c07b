package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// probe returns the p50 of a ping and of a call of the first user, in ms.
func (s *service) probe(ctx context.Context, c *session, z size) (ping, call float64, err error) {
	var all samples
	pings := figure{users: 1, calls: 5 * z.calls, do: func(ctx context.Context, c *session) (int, error) { return 0, c.ping(ctx) }}
	calls := figure{users: 1, calls: z.calls, do: func(ctx context.Context, c *session) (int, error) { return c.run(ctx, "say", nil) }}
	err = errors.Join(pings.sample(ctx, s, []*session{c}, &all), calls.sample(ctx, s, []*session{c}, &all))
	if err != nil {
		return 0, 0, err
	}
	return all.p50[0], all.p50[1], nil
}

// each calls f for users, four at a time, and returns the median of the times in ms.
func each(users []user, f func(u user) error) (float64, error) {
	var mu sync.Mutex
	var took []float64
	var err error
	var working sync.WaitGroup
	next := make(chan user)
	for range 4 {
		working.Go(func() {
			for u := range next {
				began := time.Now()
				failed := f(u)
				mu.Lock()
				took, err = append(took, time.Since(began).Seconds()*1e3), errors.Join(err, failed)
				mu.Unlock()
			}
		})
	}
	for _, u := range users {
		next <- u
	}
	close(next)
	working.Wait()
	return quantile(took, 0.5), err
}

// use calls codex once in a session of a user, which then ends.
func (s *service) use(ctx context.Context, u user) error {
	c, err := s.session(ctx, u)
	if err == nil {
		if _, err = c.run(ctx, "say", nil); err == nil {
			err = c.close(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", u.name, err)
	}
	return nil
}

// turns begins a turn of each user, a few at a time, and calls f while all of them wait. Then it lets
// them end, a few at a time too, because a machine that is too busy is not what is measured.
func (s *service) turns(ctx context.Context, users []user, prompt string, f func() error) (err error) {
	const few = 4
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var waiting atomic.Int64
	beginning, held, ended := make(chan struct{}, few), make(chan struct{}), make(chan error, len(users))
	begun := func() {
		waiting.Add(1)
		<-beginning
	}
	s.lab.script(1, begun, held)
	for _, u := range users {
		go func() {
			select {
			case beginning <- struct{}{}:
			case <-ctx.Done():
			}
			c, err := s.session(ctx, u)
			if err == nil {
				_, err = c.run(ctx, prompt, func() {
					begun()
					select {
					case <-held:
					case <-ctx.Done():
					}
				})
			}
			if err == nil {
				err = c.close(ctx)
			}
			if err != nil {
				cancel() // the others end too
			}
			ended <- err
		}()
	}
	if err = until(ctx, func() (bool, error) { return int(waiting.Load()) == len(users), nil }); err == nil {
		err = f()
	}
	if err != nil {
		cancel()
	}
	for sent, done := 0, 0; done < len(users); {
		next := held
		if sent-done >= few {
			next = nil
		}
		select {
		case next <- struct{}{}:
			sent++
		case failed := <-ended:
			err = errors.Join(err, failed)
			done++
		}
	}
	return err
}

// table collects the figures of a service in several states, each in a column.
type table struct {
	s     *service
	z     size
	c     *session // of the first user
	alone cost     // of the service with one worker
	rows  []row    // the first one is the title
}

// tabulate starts a gateway with so many nodes, and begins its table with what the direct way
// takes, and the gateway with one user. The caller closes the service, also after an error.
func (l *lab) tabulate(ctx context.Context, z size, users, nodes int, workerIdle string) (*table, error) {
	l.script(1, nil, nil)
	t := &table{z: z, rows: []row{{}, {what: "MiB of a user"}, {what: "CPU of a user, ms/s"}, {what: "processes of a user"}, {what: "`ping` of another user, ms"}, {what: "`codex` of another user, ms"}}}
	var err error
	if t.s, err = l.direct(ctx); err == nil {
		err = t.begin(ctx, "direct, one user")
	}
	if err = errors.Join(err, t.s.close()); err != nil {
		return t, err
	}
	if t.s, err = l.gateway(ctx, 1+users, nodes, workerIdle); err == nil {
		err = t.begin(ctx, "one user")
	}
	t.rows[0].what = t.s.name
	return t, err
}

// begin adds the column of a service with one user.
func (t *table) begin(ctx context.Context, state string) (err error) {
	if t.c, err = t.s.session(ctx, t.s.users[0]); err != nil {
		return err
	}
	if _, err = t.c.run(ctx, "say", nil); err != nil {
		return err
	}
	t.alone = cost{}
	t.alone, err = t.add(ctx, state, 1)
	return err
}

// add adds a column. The difference to the service with one user is divided by the users.
func (t *table) add(ctx context.Context, state string, users int) (cost, error) {
	got, err := t.s.state(t.z.lasts)
	if err != nil {
		return got, err
	}
	ping, call, err := t.s.probe(ctx, t.c, t.z)
	n := float64(users)
	t.rows[0].title = append(t.rows[0].title, state)
	for i, v := range []float64{(got.memory - t.alone.memory) / n, (got.cpu - t.alone.cpu) / n * 1e3, float64(got.processes-t.alone.processes) / n, ping, call} {
		t.rows[1+i].values = append(t.rows[1+i].values, v)
	}
	return got, err
}

// states measures users whose workers are idle, or whose turns wait.
func (l *lab) states(ctx context.Context, z size) (rows []row, err error) {
	for _, nodes := range z.nodes {
		t, err := l.tabulate(ctx, z, z.busy, nodes, "1h")
		if err == nil {
			err = l.waiting(ctx, t)
		}
		if err = errors.Join(err, t.s.close()); err != nil {
			return nil, err
		}
		rows = append(rows, t.rows...)
	}
	return rows, nil
}

// waiting adds the states.
func (l *lab) waiting(ctx context.Context, t *table) error {
	others := t.s.users[1:]
	if _, err := each(others, func(u user) error { return t.s.use(ctx, u) }); err != nil {
		return err
	}
	if _, err := t.add(ctx, fmt.Sprintf("%d workers idle", t.z.busy), t.z.busy); err != nil {
		return err
	}
	for _, by := range [][2]string{{"wait", "%d wait for the model"}, {"ask", "%d wait for an approval"}} {
		prompt, state := by[0], by[1]
		if err := t.s.turns(ctx, others, prompt, func() error {
			_, err := t.add(ctx, fmt.Sprintf(state, t.z.busy), t.z.busy)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// idle measures users whose workers have ended, and what their first calls took.
func (l *lab) idle(ctx context.Context, z size) (rows []row, err error) {
	for _, nodes := range z.nodes {
		t, err := l.tabulate(ctx, z, z.idle, nodes, "1s")
		if err == nil {
			err = l.ended(ctx, t)
		}
		if err = errors.Join(err, t.s.close()); err != nil {
			return nil, err
		}
		rows = append(rows, t.rows...)
	}
	return rows, nil
}

// ended adds the state, and what the first calls took.
func (l *lab) ended(ctx context.Context, t *table) error {
	stored := t.s.stored()
	before, err := t.s.cost(false)
	if err != nil {
		return err
	}
	first, err := each(t.s.users[1:], func(u user) error { return t.s.use(ctx, u) })
	if err != nil {
		return err
	}
	after, err := t.s.cost(false)
	if err == nil {
		err = until(ctx, func() (bool, error) {
			now, err := t.s.cost(false)
			return now.processes == t.alone.processes, err
		})
	}
	if err != nil {
		return fmt.Errorf("the workers do not end: %w", err)
	}
	time.Sleep(3 * t.z.lasts) // the node gives back the leases
	_, err = t.add(ctx, fmt.Sprintf("%d without a worker", t.z.idle), t.z.idle)
	n := float64(t.z.idle)
	t.rows = append(t.rows,
		row{what: "first call, which starts the worker, ms", values: []float64{first}},
		row{what: "CPU of the first call, ms", values: []float64{(after.cpu - before.cpu) / n * 1e3}},
		row{what: "KiB in JetStream of a user", values: []float64{(t.s.stored() - stored) / n}})
	return err
}
