package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/hibiken/asynq"
)

type serving struct {
	Queues          map[string]int `json:"queues"`
	Concurrency     int            `json:"concurrency"`
	RetryDelayMs    int64          `json:"retryDelayMs"`
	GroupGraceMs    int64          `json:"groupGraceMs"` // 0: groups are left alone
	GroupMaxSize    int            `json:"groupMaxSize"`
	ShutdownMs      int64          `json:"shutdownMs"`
	StrictPriority  bool           `json:"strictPriority"`
	DelayedCheckMs  int64          `json:"delayedCheckMs"`
	TaskCheckMs     int64          `json:"taskCheckMs"`
	LogsEverything  bool           `json:"logsEverything"`
	JanitorMs       int64          `json:"janitorMs"`
	RunsAreNotShown bool           `json:"runsAreNotShown"`
}

// serve starts a server that does what the type of a task says, and returns its number.
func (d *driver) serve(args json.RawMessage) (any, error) {
	asked := serving{
		Concurrency: 4, RetryDelayMs: 1000, ShutdownMs: 1000, DelayedCheckMs: 100, TaskCheckMs: 50, JanitorMs: 500,
	}
	if err := json.Unmarshal(args, &asked); err != nil {
		return nil, err
	}
	config := asynq.Config{
		Concurrency: asked.Concurrency, Queues: asked.Queues, StrictPriority: asked.StrictPriority,
		TaskCheckInterval: milliseconds(asked.TaskCheckMs), DelayedTaskCheckInterval: milliseconds(asked.DelayedCheckMs),
		RetryDelayFunc:  func(int, error, *asynq.Task) time.Duration { return milliseconds(asked.RetryDelayMs) },
		ShutdownTimeout: milliseconds(asked.ShutdownMs), JanitorInterval: milliseconds(asked.JanitorMs),
		LogLevel: asynq.FatalLevel,
	}
	if asked.LogsEverything {
		config.LogLevel, config.Logger = asynq.DebugLevel, logger{}
	}
	if asked.GroupGraceMs > 0 {
		config.GroupGracePeriod, config.GroupMaxSize = milliseconds(asked.GroupGraceMs), asked.GroupMaxSize
		config.GroupAggregator = asynq.GroupAggregatorFunc(aggregate)
	}
	server := asynq.NewServer(d.options, config)
	handler := func(ctx context.Context, task *asynq.Task) error { return d.handle(ctx, task, !asked.RunsAreNotShown) }
	if err := server.Start(asynq.HandlerFunc(handler)); err != nil {
		return nil, err
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.servers = append(d.servers, server)
	return len(d.servers) - 1, nil
}

func (d *driver) shutdown(args json.RawMessage) (any, error) {
	var number int
	if err := json.Unmarshal(args, &number); err != nil {
		return nil, err
	}
	d.mutex.Lock()
	server := d.servers[number]
	d.mutex.Unlock()
	server.Shutdown()
	return nil, nil
}

// handle does the same as support/handle.ts.
func (d *driver) handle(ctx context.Context, task *asynq.Task, isShown bool) error {
	id, _ := asynq.GetTaskID(ctx)
	retried, _ := asynq.GetRetryCount(ctx)
	if isShown {
		show("started", ctx, task)
	}
	switch task.Type() {
	case "fail":
		return errors.New("boom: ä")
	case "fail-once":
		if retried == 0 {
			return errors.New("not yet")
		}
	case "skip":
		return fmt.Errorf("no more of it: %w", asynq.SkipRetry)
	case "revoke":
		return fmt.Errorf("not wanted: %w", asynq.RevokeTask)
	case "result":
		_, err := task.ResultWriter().Write(append([]byte("result of "), task.Payload()...))
		return err
	case "hang":
		<-ctx.Done()
		show("stopped", ctx, task)
		return ctx.Err()
	case "count":
		time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
		if string(task.Payload()) == "fails once" && retried == 0 {
			return errors.New("not yet")
		}
		return d.redis.HIncrBy(ctx, "runs", id, 1).Err()
	case "crash":
		os.Exit(1)
	}
	return nil
}

func aggregate(group string, tasks []*asynq.Task) *asynq.Task {
	var payloads []string
	for _, task := range tasks {
		payloads = append(payloads, string(task.Payload()))
	}
	return asynq.NewTask("aggregated", []byte(group+"="+strings.Join(payloads, ",")), asynq.Retention(time.Hour))
}

func show(event string, ctx context.Context, task *asynq.Task) {
	id, _ := asynq.GetTaskID(ctx)
	queue, _ := asynq.GetQueueName(ctx)
	retried, _ := asynq.GetRetryCount(ctx)
	maxRetry, _ := asynq.GetMaxRetry(ctx)
	deadline, _ := ctx.Deadline()
	say(fields{
		"event": event, "task": id, "type": task.Type(), "queue": queue, "payload": task.Payload(), "headers": headersOf(task),
		"retried": retried, "maxRetry": maxRetry, "deadline": deadline,
	})
}

// logger says what asynq would print.
type logger struct{}

func (logger) Debug(args ...any) { log("debug", args) }
func (logger) Info(args ...any)  { log("info", args) }
func (logger) Warn(args ...any)  { log("warn", args) }
func (logger) Error(args ...any) { log("error", args) }
func (logger) Fatal(args ...any) { log("fatal", args) }

func log(level string, args []any) {
	say(fields{"event": "log", "level": level, "text": fmt.Sprint(args...)})
}
