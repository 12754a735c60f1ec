// asynq as a contestant: the work that its `BenchmarkEndToEndSimple` measures, and the other cases, requested over HTTP.
//
//	asynq-bench ADDRESS
//
// It prints the address where it listens, and ends with its stdin. The reply to a request, `/VERB/ARGUMENT…`, is JSON.
//
//	enqueue COUNT CALLERS        one task a call
//	start CONCURRENCY            a server; replies when it runs
//	handled COUNT                waits for the handlers of COUNT tasks; replies with the first failure, or an empty string
//	latencies COUNT PER_SECOND   enqueues at a fixed rate; replies with the time of each to its handler, in ms
//	close                        replies when all results have been written
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
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
	http.HandleFunc("/", func(reply http.ResponseWriter, request *http.Request) {
		words := strings.Split(request.URL.Path[1:], "/")
		check(json.NewEncoder(reply).Encode(c.do(words[0], numbers(words[1:]))))
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	fmt.Println(listener.Addr())
	go func() { check(http.Serve(listener, nil)) }()
	_, err = io.Copy(io.Discard, os.Stdin)
	check(err)
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
		return c.wait(arguments[0])
	case "latencies":
		return c.measure(arguments[0], arguments[1])
	case "close":
		time.Sleep(closeDelay)
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

func (c *contestant) wait(count int) string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.expected = count
	for c.handled < count {
		c.reached.Wait()
	}
	return c.problem
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
