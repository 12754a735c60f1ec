package main

import (
	"encoding/json"
	"time"

	"github.com/hibiken/asynq"
)

type scheduling struct {
	Spec string  `json:"spec"`
	Task newTask `json:"task"`
}

// schedule starts a scheduler with one entry, and returns the entry's id and the scheduler's number.
func (d *driver) schedule(args json.RawMessage) (any, error) {
	var asked scheduling
	if err := json.Unmarshal(args, &asked); err != nil {
		return nil, err
	}
	task, err := taskOf(asked.Task)
	if err != nil {
		return nil, err
	}
	scheduler := asynq.NewScheduler(d.options, &asynq.SchedulerOpts{
		HeartbeatInterval: time.Second, LogLevel: asynq.FatalLevel,
	})
	entry, err := scheduler.Register(asked.Spec, task, asked.Task.options()...)
	if err != nil {
		return nil, err
	}
	if err := scheduler.Start(); err != nil {
		return nil, err
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.schedulers = append(d.schedulers, scheduler)
	return fields{"entry": entry, "scheduler": len(d.schedulers) - 1}, nil
}

// unschedule shuts a scheduler down.
func (d *driver) unschedule(args json.RawMessage) (any, error) {
	var number int
	if err := json.Unmarshal(args, &number); err != nil {
		return nil, err
	}
	d.mutex.Lock()
	scheduler := d.schedulers[number]
	d.mutex.Unlock()
	scheduler.Shutdown()
	return nil, nil
}
