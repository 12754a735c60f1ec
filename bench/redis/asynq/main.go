// asynq as a contestant: the work that its `BenchmarkEndToEndSimple` measures, and the other cases, requested over stdin.
//
//	asynq-bench ADDRESS
//
// A request is a line, `ID VERB ARGUMENT…`; its reply is a line when it is done, `ID JSON`. Requests may overlap.
//
//	enqueue COUNT CALLERS        one task a call
//	start CONCURRENCY            a server; replies when it runs
//	handled COUNT                replies when the handlers of COUNT tasks have run
//	latencies COUNT PER_SECOND   enqueues at a fixed rate; replies with the time of each to its handler, in ms
//	problem                      the first failure, or an empty string
//	close                        ends when all results have been written
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

// As in contestant.ts.
const firstNumber = 1_000_000

// Enough to write pending results. Server.Shutdown would also wait for a poll that sleeps.
const closeDelay = 50 * time.Millisecond

var padding = strings.Repeat("x", 33)

type payload struct {
	Number  int    `json:"number"`
	Padding string `json:"padding"`
}

type contestant struct {
	redis  asynq.RedisClientOpt
	client *asynq.Client
	server *asynq.Server

	mutex      sync.Mutex
	reached    *sync.Cond
	expected   int
	enqueuedAt []time.Time
	latencies  []float64
	handled    int
	problem    string
}

func main() {
	redis := asynq.RedisClientOpt{Addr: os.Args[1]}
	c := &contestant{redis: redis, client: asynq.NewClient(redis)}
	c.reached = sync.NewCond(&c.mutex)
	var writing sync.Mutex
	reply := func(id string, what any) {
		text, err := json.Marshal(what)
		check(err)
		writing.Lock()
		defer writing.Unlock()
		fmt.Printf("%s %s\n", id, text)
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if words[1] == "close" {
			time.Sleep(closeDelay)
			reply(words[0], nil)
			return
		}
		go func() { reply(words[0], c.do(words[1], numbers(words[2:]))) }()
	}
}

func numbers(words []string) (all [2]int) {
	for at, word := range words {
		number, err := strconv.Atoi(word)
		check(err)
		all[at] = number
	}
	return all
}

func (c *contestant) do(verb string, arguments [2]int) any {
	switch verb {
	case "enqueue":
		c.enqueue(arguments[0], arguments[1])
	case "start":
		c.start(arguments[0])
	case "handled":
		c.wait(arguments[0])
	case "latencies":
		return c.measure(arguments[0], arguments[1])
	case "problem":
		c.mutex.Lock()
		defer c.mutex.Unlock()
		return c.problem
	default:
		check(fmt.Errorf("unknown verb: %s", verb))
	}
	return nil
}

func (c *contestant) enqueue(count, callers int) {
	var left atomic.Int64
	left.Store(int64(count))
	var all sync.WaitGroup
	for range callers {
		all.Add(1)
		go func() {
			defer all.Done()
			for left.Add(-1) >= 0 {
				c.enqueueNext()
			}
		}()
	}
	all.Wait()
}

func (c *contestant) enqueueNext() {
	c.mutex.Lock()
	number := len(c.enqueuedAt)
	c.enqueuedAt = append(c.enqueuedAt, time.Now())
	c.latencies = append(c.latencies, -1)
	c.mutex.Unlock()
	text, err := json.Marshal(payload{Number: firstNumber + number, Padding: padding})
	check(err)
	_, err = c.client.Enqueue(asynq.NewTask("work", text))
	check(err)
}

func (c *contestant) start(concurrency int) {
	c.server = asynq.NewServer(c.redis, asynq.Config{Concurrency: concurrency, LogLevel: asynq.ErrorLevel})
	check(c.server.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		var found payload
		if err := json.Unmarshal(task.Payload(), &found); err != nil {
			return err
		}
		c.handle(found.Number - firstNumber)
		return nil
	})))
}

func (c *contestant) handle(number int) {
	now := time.Now()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if number < 0 || number >= len(c.latencies) || c.latencies[number] != -1 {
		c.problem = fmt.Sprintf("task %d is unknown or was handled twice", number)
		return
	}
	c.latencies[number] = float64(now.Sub(c.enqueuedAt[number])) / float64(time.Millisecond)
	c.handled++
	if c.handled == c.expected {
		c.reached.Broadcast()
	}
}

func (c *contestant) wait(count int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.expected = count
	for c.handled < count {
		c.reached.Wait()
	}
}

func (c *contestant) measure(count, perSecond int) []float64 {
	start := time.Now()
	var all sync.WaitGroup
	for added := 0; added < count; {
		time.Sleep(time.Millisecond)
		due := min(int(time.Since(start).Seconds()*float64(perSecond)), count)
		for ; added < due; added++ {
			all.Add(1)
			go func() {
				defer all.Done()
				c.enqueueNext()
			}()
		}
	}
	all.Wait()
	c.wait(count)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.latencies
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
