--
-- PostgreSQL database dump
--


-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: bandwatch_append_only(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.bandwatch_append_only() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: bandwatch_version; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.bandwatch_version (
    version_num character varying(32) NOT NULL
);


--
-- Name: cases; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.cases (
    id bigint NOT NULL,
    fingerprint character varying(16) NOT NULL,
    kernel character varying(200) NOT NULL,
    implementation character varying(200) NOT NULL,
    dtype character varying(200) NOT NULL,
    shape text NOT NULL,
    alignment character varying(200) NOT NULL,
    cache character varying(200) NOT NULL,
    parameters text NOT NULL,
    version bigint NOT NULL,
    label text NOT NULL
);


--
-- Name: commit_parents; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.commit_parents (
    commit_id bigint NOT NULL,
    "position" integer NOT NULL,
    parent_id bigint NOT NULL
);


--
-- Name: commits; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.commits (
    id bigint NOT NULL,
    sha character varying(64) NOT NULL,
    known boolean NOT NULL,
    author text,
    author_time character varying(40),
    commit_time character varying(40),
    committed double precision,
    subject text
);


--
-- Name: devices; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.devices (
    id bigint NOT NULL,
    gpu_model_id bigint NOT NULL,
    uuid character varying(200) NOT NULL,
    name character varying(200) NOT NULL
);


--
-- Name: environments; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.environments (
    id bigint NOT NULL,
    digest character varying(64) NOT NULL,
    fingerprint character varying(16) NOT NULL,
    gpu_model_id bigint NOT NULL,
    body text NOT NULL
);


--
-- Name: facts; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.facts (
    id bigint NOT NULL,
    digest character varying(32) NOT NULL,
    code_fingerprint text,
    body text NOT NULL
);


--
-- Name: gpu_models; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.gpu_models (
    id bigint NOT NULL,
    backend character varying(8) NOT NULL,
    name character varying(200) NOT NULL
);


--
-- Name: meta; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.meta (
    id bigint NOT NULL,
    store_id character varying(32) NOT NULL,
    created_at character varying(40) NOT NULL,
    revision bigint NOT NULL,
    CONSTRAINT ck_meta_one_row CHECK ((id = 1))
);


--
-- Name: results; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.results (
    id bigint NOT NULL,
    run_id bigint NOT NULL,
    case_id bigint NOT NULL,
    facts_id bigint NOT NULL,
    status character varying(16) NOT NULL,
    count integer,
    median_s double precision,
    mean_s double precision,
    min_s double precision,
    max_s double precision,
    q1_s double precision,
    q3_s double precision,
    stddev_s double precision,
    bytes_moved bigint,
    copy_bytes_per_s double precision,
    median_cycles double precision,
    shared boolean NOT NULL
);


--
-- Name: runs; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.runs (
    id bigint NOT NULL,
    run_id character varying(64) NOT NULL,
    digest character varying(64) NOT NULL,
    gpu_model_id bigint NOT NULL,
    device_id bigint NOT NULL,
    environment_id bigint NOT NULL,
    commit_id bigint,
    branch text,
    dirty boolean NOT NULL,
    complete boolean NOT NULL,
    demo boolean NOT NULL,
    started_at character varying(40) NOT NULL,
    started double precision NOT NULL,
    finished_at character varying(40),
    recorded_at character varying(40) NOT NULL,
    revision bigint NOT NULL,
    results integer NOT NULL,
    statuses text NOT NULL,
    thinned_at character varying(40),
    detail text NOT NULL
);


--
-- Name: samples; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.samples (
    result_id bigint NOT NULL,
    measurements bytea,
    detail bytea NOT NULL
);


--
-- Name: series; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.series (
    id bigint NOT NULL,
    case_id bigint NOT NULL,
    gpu_model_id bigint NOT NULL,
    fingerprint character varying(16) NOT NULL,
    results integer NOT NULL,
    first_started double precision NOT NULL,
    last_started double precision NOT NULL
);


--
-- Name: triage; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.triage (
    id bigint NOT NULL,
    case_fingerprint character varying(16) NOT NULL,
    gpu_model character varying(200) NOT NULL,
    commit_sha character varying(64) NOT NULL,
    previous_sha character varying(64),
    state character varying(16) NOT NULL,
    effect double precision,
    author text NOT NULL,
    note text NOT NULL,
    at character varying(40) NOT NULL,
    expires_at character varying(40),
    CONSTRAINT ck_triage_known_state CHECK (((state)::text = ANY ((ARRAY['new'::character varying, 'acknowledged'::character varying, 'accepted'::character varying, 'reopened'::character varying])::text[])))
);


--
-- Name: waivers; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.waivers (
    id bigint NOT NULL,
    pattern text NOT NULL,
    gpu_model character varying(200),
    action character varying(16) NOT NULL,
    author text NOT NULL,
    note text NOT NULL,
    at character varying(40) NOT NULL,
    expires_at character varying(40),
    CONSTRAINT ck_waivers_known_action CHECK (((action)::text = ANY ((ARRAY['granted'::character varying, 'revoked'::character varying])::text[])))
);


--
-- Data for Name: bandwatch_version; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.bandwatch_version VALUES ('0001');


--
-- Data for Name: cases; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.cases VALUES (1, 'cc61d7b1fddc2b07', 'relu', 'cuda_vector', 'float32', '[67108864]', 'aligned', 'cold', '{}', 1, 'relu/cuda_vector float32 [67108864] cold');
INSERT INTO public.cases VALUES (2, 'cb96058a3893f773', 'relu', 'torch', 'float32', '[67108864]', 'aligned', 'cold', '{}', 1, 'relu/torch float32 [67108864] cold');
INSERT INTO public.cases VALUES (3, '10d1162437f2a76e', 'relu', 'triton', 'float32', '[67108864]', 'aligned', 'cold', '{}', 1, 'relu/triton float32 [67108864] cold');
INSERT INTO public.cases VALUES (4, '790bc42fb0c7dd75', 'relu', 'cuda_scalar', 'float32', '[67108864]', 'aligned', 'cold', '{}', 1, 'relu/cuda_scalar float32 [67108864] cold');
INSERT INTO public.cases VALUES (5, '21ce1b61456dd332', '=cmd()', 'é "x", =1+1
	 ‮☃ ''0''; -@', 'float32', '[67108864]', 'aligned', 'cold', '{"b":true,"n":3,"x":0.1,"å":"é \"x\", =1+1\r\n\t ‮☃ ''0''; -@"}', 1, '=cmd()/é "x", =1+1
	 ‮☃ ''0''; -@ float32 [67108864] b=True n=3 x=0.1 å=é "x", =1+1
	 ‮☃ ''0''; -@ cold');
INSERT INTO public.cases VALUES (6, '490872f8cab7c91b', 'none', 'cuda_vector', 'float32', '[67108864]', 'aligned', 'cold', '{}', 1, 'none/cuda_vector float32 [67108864] cold');
INSERT INTO public.cases VALUES (7, '9620a9124a3b2006', 'wrong', 'cuda_vector', 'float32', '[67108864]', '+1', '-warm', '{}', 1, 'wrong/cuda_vector float32 [67108864] +1 -warm');
INSERT INTO public.cases VALUES (8, 'c2ceb42c2aa642cd', 'odd', 'cuda_vector', 'float32', '[0]', 'aligned', 'cold', '{}', 1, 'odd/cuda_vector float32 [0] cold');
INSERT INTO public.cases VALUES (9, 'f91eed58c1fdda05', 'single', 'cuda_vector', 'float32', '[1]', 'aligned', 'cold', '{}', 1, 'single/cuda_vector float32 [1] cold');


--
-- Data for Name: commit_parents; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.commit_parents VALUES (2, 0, 1);
INSERT INTO public.commit_parents VALUES (3, 0, 2);
INSERT INTO public.commit_parents VALUES (4, 0, 3);
INSERT INTO public.commit_parents VALUES (5, 0, 6);
INSERT INTO public.commit_parents VALUES (5, 1, 7);
INSERT INTO public.commit_parents VALUES (8, 0, 4);
INSERT INTO public.commit_parents VALUES (9, 0, 8);
INSERT INTO public.commit_parents VALUES (10, 0, 11);
INSERT INTO public.commit_parents VALUES (10, 1, 12);


--
-- Data for Name: commits; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.commits VALUES (1, '0000000000000000000000000000000000000001', true, 'Ada <ada@example.org>', '2026-03-01T00:01:00+01:00', '2026-03-01T00:01:00+01:00', 1772319660, 'Change 1');
INSERT INTO public.commits VALUES (2, '0000000000000000000000000000000000000002', true, 'Ada <ada@example.org>', '2026-03-01T00:02:00+01:00', '2026-03-01T00:02:00+01:00', 1772319720, 'Change 2');
INSERT INTO public.commits VALUES (3, '0000000000000000000000000000000000000003', true, 'Ada <ada@example.org>', '2026-03-01T00:03:00+01:00', '2026-03-01T00:03:00+01:00', 1772319780, 'Change 3');
INSERT INTO public.commits VALUES (4, '0000000000000000000000000000000000000004', true, 'Ada <ada@example.org>', '2026-03-01T00:04:00+01:00', '2026-03-01T00:04:00+01:00', 1772319840, 'Change 4');
INSERT INTO public.commits VALUES (5, '0000000000000000000000000000000000000009', true, 'Ada <ada@example.org>', '2026-03-01T00:09:00+01:00', '2026-03-01T00:09:00+01:00', 1772320140, 'Change 9');
INSERT INTO public.commits VALUES (6, '0000000000000000000000000000000000000007', false, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.commits VALUES (7, '0000000000000000000000000000000000000008', false, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.commits VALUES (8, '0000000000000000000000000000000000000005', true, 'Ada <ada@example.org>', '2026-03-01T00:05:00+01:00', '2026-03-01T00:05:00+01:00', 1772319900, 'Change 5');
INSERT INTO public.commits VALUES (9, '0000000000000000000000000000000000000006', true, 'Ada <ada@example.org>', '2026-03-01T00:06:00+01:00', '2026-03-01T00:06:00+01:00', 1772319960, 'Change 6');
INSERT INTO public.commits VALUES (10, '000000000000000000000000000000000000000c', true, 'Ada <ada@example.org>', '2026-03-01T00:12:00+01:00', '2026-03-01T00:12:00+01:00', 1772320320, 'Change 12');
INSERT INTO public.commits VALUES (11, '000000000000000000000000000000000000000a', false, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.commits VALUES (12, '000000000000000000000000000000000000000b', false, NULL, NULL, NULL, NULL, NULL);


--
-- Data for Name: devices; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.devices VALUES (1, 1, 'GPU-11111111-2222-3333-4444-555555555555', 'NVIDIA H200');
INSERT INTO public.devices VALUES (2, 2, 'GPU-11111111-2222-3333-4444-555555555555', 'NVIDIA H200');
INSERT INTO public.devices VALUES (3, 3, 'GPU-11111111-2222-3333-4444-555555555555', 'NVIDIA H200');


--
-- Data for Name: environments; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.environments VALUES (1, '6582952a5183a3b421adb24a4d8f2e9bd8dc64754ac22cf24f7a0b2ffce1c743', '6f52eaf643d4a174', 1, '{"backend":"cuda","clock_policy":"default","compute_capability":"9.0","cuda":"13.0","driver":"580.95.05","ecc":true,"gpu_model":"NVIDIA H200","l2_bytes":62914560,"libraries":{"torch":"2.11.0","triton":"3.6.0"},"mig":false,"os":"Linux 6.8","power_limit_w":700.0,"python":"3.12.3"}');
INSERT INTO public.environments VALUES (2, 'c708b76da1334c184294e242139302ca2578e2bf1b337ef4d9d5aba53669a7d7', '506eb894c8827499', 2, '{"backend":"cuda","clock_policy":"default","compute_capability":"9.0","cuda":"13.0","driver":"580.95.05","ecc":true,"gpu_model":"NVIDIA Ä100 ''x''","l2_bytes":62914560,"libraries":{"torch":"2.11.0","triton":"3.6.0"},"mig":false,"os":"Linux 6.8","power_limit_w":700.0,"python":"3.12.3"}');
INSERT INTO public.environments VALUES (3, '7b49cdc4b87aaacaa857ffe6376d48d7a80b6d100722d328fdc9c2e72c58f495', '6292b36c767507fe', 3, '{"backend":"cuda","clock_policy":"default","compute_capability":"9.0","cuda":"13.0","driver":null,"ecc":null,"gpu_model":"=NVIDIA","l2_bytes":62914560,"libraries":{},"mig":false,"os":"Linux 6.8","power_limit_w":700.0,"python":"3.12.3"}');


--
-- Data for Name: facts; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.facts VALUES (1, '7ecd696bf805e783aa2e227863648304', '8c1f2b7a9d3e4f50', '{"correctness":{"bound":0.0,"checked":true,"passed":true},"flop":67108864,"peaks":{"copy_source":"copy of the same size","theoretical_bytes_per_s":4800000000000.0,"theoretical_flop_per_s":67000000000000.0},"reasons":{"counters":"not asked for","energy":"not asked for"},"source_file":"kernels/relu/cuda.cu","source_line":12,"stop_reason":"interval narrow enough","test":"perftests/test_relu.py::test_relu[cuda_vector-float32-67108864]","timer":"cuda events"}');
INSERT INTO public.facts VALUES (2, 'd394d8929b9d18acc3dff35bb23a37ec', '8c1f2b7a9d3e4f50', '{"correctness":{"bound":0.0,"checked":true,"passed":true},"flop":67108864,"peaks":{"copy_source":"copy of the same size","theoretical_bytes_per_s":4800000000000.0,"theoretical_flop_per_s":67000000000000.0},"reasons":{"status":"é \"x\", =1+1\r\n\t ‮☃ ''0''; -@"},"source_file":"kernels/relu/cuda.cu","source_line":12,"stop_reason":"interval narrow enough","test":"perftests/test_relu.py::test_relu[cuda_vector-float32-67108864]","timer":"cuda events"}');
INSERT INTO public.facts VALUES (3, 'e5c3c34104eb76f40826512c89854d60', '8c1f2b7a9d3e4f50', '{"correctness":{"checked":true,"detail":"é \"x\", =1+1\r\n\t ‮☃ ''0''; -@","passed":false},"flop":67108864,"peaks":{"copy_source":"copy of the same size","theoretical_bytes_per_s":4800000000000.0,"theoretical_flop_per_s":67000000000000.0},"reasons":{"counters":"not asked for","energy":"not asked for"},"source_file":"kernels/relu/cuda.cu","source_line":12,"stop_reason":"interval narrow enough","test":"perftests/test_relu.py::test_relu[cuda_vector-float32-67108864]","timer":"cuda events"}');
INSERT INTO public.facts VALUES (4, 'c36f2b990be6a532267d4f4db1e96f2a', NULL, '{"correctness":{"bound":0.0,"checked":true,"passed":true},"flop":9223372036854775807,"peaks":{"copy_source":"copy of the same size","theoretical_bytes_per_s":4800000000000.0,"theoretical_flop_per_s":67000000000000.0},"reasons":{"counters":"not asked for","energy":"not asked for"},"source_file":"kernels/relu/cuda.cu","source_line":12,"stop_reason":"interval narrow enough","test":"perftests/test_relu.py::test_relu[cuda_vector-float32-67108864]"}');
INSERT INTO public.facts VALUES (5, '6de451233dc8fdd778977d03413ec0bf', '8c1f2b7a9d3e4f50', '{"correctness":{"bound":0.0,"checked":true,"passed":true},"flop":1,"peaks":{"copy_source":"copy of the same size","theoretical_bytes_per_s":4800000000000.0,"theoretical_flop_per_s":67000000000000.0},"reasons":{"counters":"not asked for","energy":"not asked for"},"source_file":"kernels/relu/cuda.cu","source_line":12,"stop_reason":"interval narrow enough","test":"perftests/test_relu.py::test_relu[cuda_vector-float32-67108864]","timer":"cuda events"}');


--
-- Data for Name: gpu_models; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.gpu_models VALUES (1, 'cuda', 'NVIDIA H200');
INSERT INTO public.gpu_models VALUES (2, 'cuda', 'NVIDIA Ä100 ''x''');
INSERT INTO public.gpu_models VALUES (3, 'cuda', '=NVIDIA');


--
-- Data for Name: meta; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.meta VALUES (1, 'cc6cb2b6af2d4b5d89d54825a03fbb1f', '2026-11-30T01:07:50+00:00', 21);


--
-- Data for Name: results; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.results VALUES (1, 1, 1, 1, 'ok', 6, 0.00013, 0.00013000000000000002, 0.000128, 0.000132, 0.00012925, 0.00013075, 1.4142135623731026e-06, 536870912, 4210000000000, 257400.5, false);
INSERT INTO public.results VALUES (2, 1, 2, 1, 'ok', 3, 0.000205, 0.000205, 0.0002, 0.00021, 0.0002025, 0.0002075, 4.9999999999999996e-06, 536870912, 4210000000000, 257400.5, false);
INSERT INTO public.results VALUES (3, 2, 1, 1, 'ok', 6, 0.00013, 0.00013000000000000002, 0.000128, 0.000132, 0.00012925, 0.00013075, 1.4142135623731026e-06, 536870912, 4210000000000, 257400.5, false);
INSERT INTO public.results VALUES (4, 2, 2, 1, 'ok', 3, 0.000205, 0.000205, 0.0002, 0.00021, 0.0002025, 0.0002075, 4.9999999999999996e-06, 536870912, 4210000000000, 257400.5, false);
INSERT INTO public.results VALUES (5, 3, 1, 1, 'ok', 6, 0.00013, 0.00013000000000000002, 0.000128, 0.000132, 0.00012925, 0.00013075, 1.4142135623731026e-06, 536870912, 4210000000000, 257400.5, false);
INSERT INTO public.results VALUES (6, 3, 2, 1, 'ok', 3, 0.000205, 0.000205, 0.0002, 0.00021, 0.0002025, 0.0002075, 4.9999999999999996e-06, 536870912, 4210000000000, 257400.5, false);
INSERT INTO public.results VALUES (7, 4, 1, 1, 'ok', 6, 0.00013, 0.00013000000000000002, 0.000128, 0.000132, 0.00012925, 0.00013075, 1.4142135623731026e-06, 536870912, 4210000000000, 257400.5, false);
INSERT INTO public.results VALUES (8, 4, 2, 1, 'ok', 3, 0.000205, 0.000205, 0.0002, 0.00021, 0.0002025, 0.0002075, 4.9999999999999996e-06, 536870912, 4210000000000, 257400.5, false);
INSERT INTO public.results VALUES (9, 5, 1, 1, 'error', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 536870912, 4210000000000, 257400.5, false);
INSERT INTO public.results VALUES (10, 6, 1, 1, 'ok', 6, 0.00013, 0.00013000000000000002, 0.000128, 0.000132, 0.00012925, 0.00013075, 1.4142135623731026e-06, 536870912, 4210000000000, 257400.5, false);
INSERT INTO public.results VALUES (11, 6, 2, 1, 'ok', 3, 0.000205, 0.000205, 0.0002, 0.00021, 0.0002025, 0.0002075, 4.9999999999999996e-06, 536870912, 4210000000000, 257400.5, false);
INSERT INTO public.results VALUES (12, 7, 3, 1, 'ok', 6, 0.00013, 0.00013000000000000002, 0.000128, 0.000132, 0.00012925, 0.00013075, 1.4142135623731026e-06, 536870912, 4210000000000, 257400.5, false);
INSERT INTO public.results VALUES (13, 7, 1, 1, 'ok', 6, 0.00013, 0.00013000000000000002, 0.000128, 0.000132, 0.00012925, 0.00013075, 1.4142135623731026e-06, 536870912, 4210000000000, 257400.5, false);
INSERT INTO public.results VALUES (14, 7, 2, 1, 'ok', 6, 0.00013, 0.00013000000000000002, 0.000128, 0.000132, 0.00012925, 0.00013075, 1.4142135623731026e-06, 536870912, 4210000000000, 257400.5, false);
INSERT INTO public.results VALUES (15, 7, 4, 1, 'ok', 6, 0.00013, 0.00013000000000000002, 0.000128, 0.000132, 0.00012925, 0.00013075, 1.4142135623731026e-06, 536870912, 4210000000000, 257400.5, false);
INSERT INTO public.results VALUES (16, 8, 4, 1, 'ok', 6, 0.00013, 0.00013000000000000002, 0.000128, 0.000132, 0.00012925, 0.00013075, 1.4142135623731026e-06, 536870912, 4210000000000, 257400.5, false);
INSERT INTO public.results VALUES (17, 8, 2, 1, 'ok', 6, 0.00013, 0.00013000000000000002, 0.000128, 0.000132, 0.00012925, 0.00013075, 1.4142135623731026e-06, 536870912, 4210000000000, 257400.5, false);
INSERT INTO public.results VALUES (18, 8, 1, 1, 'ok', 6, 0.00013, 0.00013000000000000002, 0.000128, 0.000132, 0.00012925, 0.00013075, 1.4142135623731026e-06, 536870912, 4210000000000, 257400.5, false);
INSERT INTO public.results VALUES (19, 8, 3, 1, 'ok', 6, 0.00013, 0.00013000000000000002, 0.000128, 0.000132, 0.00012925, 0.00013075, 1.4142135623731026e-06, 536870912, 4210000000000, 257400.5, false);
INSERT INTO public.results VALUES (20, 9, 5, 1, 'ok', 6, 0.00013, 0.00013000000000000002, 0.000128, 0.000132, 0.00012925, 0.00013075, 1.4142135623731026e-06, 536870912, 4210000000000, 257400.5, false);
INSERT INTO public.results VALUES (21, 9, 6, 2, 'error', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 536870912, 4210000000000, 257400.5, false);
INSERT INTO public.results VALUES (22, 9, 7, 3, 'incorrect', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 536870912, 4210000000000, 257400.5, false);
INSERT INTO public.results VALUES (23, 9, 8, 4, 'ok', 6, 0.31666666666666665, 1.6666666666666666e+149, 5e-324, 1e+150, 0.07500002400000001, 7.5e+21, 4.08248290463863e+149, NULL, 4210000000000, NULL, false);
INSERT INTO public.results VALUES (24, 9, 9, 5, 'ok', 1, 1e-09, 1e-09, 1e-09, 1e-09, 1e-09, 1e-09, 0, 8, 4210000000000, 257400.5, false);
INSERT INTO public.results VALUES (25, 11, 1, 1, 'ok', 6, 0.00013, 0.00013000000000000002, 0.000128, 0.000132, 0.00012925, 0.00013075, 1.4142135623731026e-06, 536870912, 4210000000000, 257400.5, false);
INSERT INTO public.results VALUES (26, 11, 2, 1, 'ok', 3, 0.000205, 0.000205, 0.0002, 0.00021, 0.0002025, 0.0002075, 4.9999999999999996e-06, 536870912, 4210000000000, 257400.5, false);


--
-- Data for Name: runs; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.runs VALUES (5, 'run-failed-0001', '34b766470e7c48f13ee334985ee193a2de803d8244c05de0bdc5025970274fbc', 1, 1, 1, 2, 'main', false, true, false, '2026-03-02T01:39:00+00:00', 1772415540, '2026-03-02T01:39:40.5Z', '2026-11-30T01:07:50.076+00:00', 5, 1, '{"error":1}', NULL, '{"checkout":{"base":null,"branch":"main","commit":{"author":"Ada <ada@example.org>","author_time":"2026-03-01T00:02:00+01:00","commit_time":"2026-03-01T00:02:00+01:00","parents":["0000000000000000000000000000000000000001"],"sha":"0000000000000000000000000000000000000002","subject":"Change 2"},"dirty":false,"head":null,"merge_base":null,"notes":[],"shallow":false,"tree":"tttttttttttttttttttttttttttttttttttttttt"},"ci":{"name":"github","url":"https://example.org/runs/1"},"command":"pytest --benchmark","device":{"memory_bytes":150000000000,"multiprocessors":132,"name":"NVIDIA H200","uuid":"GPU-11111111-2222-3333-4444-555555555555"},"notes":["first"]}');
INSERT INTO public.runs VALUES (6, 'run-without-one', 'dc846ae95ab4d970f4f7f817c52ff3a96df5227cf1da6a6bff5aabb72e0979a8', 2, 2, 2, NULL, 'main', false, true, false, '2026-03-02T01:38:00+00:00', 1772415480, '2026-03-02T01:38:40.5Z', '2026-11-30T01:07:50.085+00:00', 6, 2, '{"ok":2}', NULL, '{"checkout":{"base":null,"branch":"main","commit":null,"dirty":false,"head":null,"merge_base":null,"notes":[],"shallow":false,"tree":"tttttttttttttttttttttttttttttttttttttttt"},"ci":{"name":"github","url":"https://example.org/runs/1"},"command":"pytest --benchmark","device":{"memory_bytes":150000000000,"multiprocessors":132,"name":"NVIDIA H200","uuid":"GPU-11111111-2222-3333-4444-555555555555"},"notes":["first"]}');
INSERT INTO public.runs VALUES (1, 'run-00000001', '9665a4f88558118fbb80e0d3a62c20e774db0e8eb708a61c98e30b5d1e26813c', 1, 1, 1, 1, 'main', false, true, false, '2026-03-02T00:01:00+00:00', 1772409660, '2026-03-02T00:01:40.5Z', '2026-11-30T01:07:50.034+00:00', 1, 2, '{"ok":2}', '2026-11-30T01:07:50.103+00:00', '{"checkout":{"base":null,"branch":"main","commit":{"author":"Ada <ada@example.org>","author_time":"2026-03-01T00:01:00+01:00","commit_time":"2026-03-01T00:01:00+01:00","parents":[],"sha":"0000000000000000000000000000000000000001","subject":"Change 1"},"dirty":false,"head":null,"merge_base":null,"notes":[],"shallow":false,"tree":"tttttttttttttttttttttttttttttttttttttttt"},"ci":{"name":"github","url":"https://example.org/runs/1"},"command":"pytest --benchmark","device":{"memory_bytes":150000000000,"multiprocessors":132,"name":"NVIDIA H200","uuid":"GPU-11111111-2222-3333-4444-555555555555"},"notes":["first"]}');
INSERT INTO public.runs VALUES (2, 'run-00000002', 'fbd602d967daeec9e002c55530ba6f86ee9724f0b3ea6ffd9a047d2790e5ba2e', 1, 1, 1, 2, 'main', false, true, false, '2026-03-02T00:02:00+00:00', 1772409720, '2026-03-02T00:02:40.5Z', '2026-11-30T01:07:50.050+00:00', 2, 2, '{"ok":2}', '2026-11-30T01:07:50.103+00:00', '{"checkout":{"base":null,"branch":"main","commit":{"author":"Ada <ada@example.org>","author_time":"2026-03-01T00:02:00+01:00","commit_time":"2026-03-01T00:02:00+01:00","parents":["0000000000000000000000000000000000000001"],"sha":"0000000000000000000000000000000000000002","subject":"Change 2"},"dirty":false,"head":null,"merge_base":null,"notes":[],"shallow":false,"tree":"tttttttttttttttttttttttttttttttttttttttt"},"ci":{"name":"github","url":"https://example.org/runs/1"},"command":"pytest --benchmark","device":{"memory_bytes":150000000000,"multiprocessors":132,"name":"NVIDIA H200","uuid":"GPU-11111111-2222-3333-4444-555555555555"},"notes":["first"]}');
INSERT INTO public.runs VALUES (3, 'run-00000003', 'f930a492b1ac2ca478fac2c132e0edf52117848e7448d357e8816b334ca538cc', 1, 1, 1, 3, 'main', false, true, false, '2026-03-02T00:03:00+00:00', 1772409780, '2026-03-02T00:03:40.5Z', '2026-11-30T01:07:50.060+00:00', 3, 2, '{"ok":2}', '2026-11-30T01:07:50.103+00:00', '{"checkout":{"base":null,"branch":"main","commit":{"author":"Ada <ada@example.org>","author_time":"2026-03-01T00:03:00+01:00","commit_time":"2026-03-01T00:03:00+01:00","parents":["0000000000000000000000000000000000000002"],"sha":"0000000000000000000000000000000000000003","subject":"Change 3"},"dirty":false,"head":null,"merge_base":null,"notes":[],"shallow":false,"tree":"tttttttttttttttttttttttttttttttttttttttt"},"ci":{"name":"github","url":"https://example.org/runs/1"},"command":"pytest --benchmark","device":{"memory_bytes":150000000000,"multiprocessors":132,"name":"NVIDIA H200","uuid":"GPU-11111111-2222-3333-4444-555555555555"},"notes":["first"]}');
INSERT INTO public.runs VALUES (4, 'run-00000004', '8f249b3ac3fd215ae3ac319e42748e5f0e14a62f29a4a82a16a599094ac09920', 1, 1, 1, 4, 'main', false, true, false, '2026-03-02T00:04:00+00:00', 1772409840, '2026-03-02T00:04:40.5Z', '2026-11-30T01:07:50.068+00:00', 4, 2, '{"ok":2}', '2026-11-30T01:07:50.103+00:00', '{"checkout":{"base":null,"branch":"main","commit":{"author":"Ada <ada@example.org>","author_time":"2026-03-01T00:04:00+01:00","commit_time":"2026-03-01T00:04:00+01:00","parents":["0000000000000000000000000000000000000003"],"sha":"0000000000000000000000000000000000000004","subject":"Change 4"},"dirty":false,"head":null,"merge_base":null,"notes":[],"shallow":false,"tree":"tttttttttttttttttttttttttttttttttttttttt"},"ci":{"name":"github","url":"https://example.org/runs/1"},"command":"pytest --benchmark","device":{"memory_bytes":150000000000,"multiprocessors":132,"name":"NVIDIA H200","uuid":"GPU-11111111-2222-3333-4444-555555555555"},"notes":["first"]}');
INSERT INTO public.runs VALUES (7, 'run-uneven-0001', '6e4a14dd7af39caf3fac469d434e6f0982656cfd54538eae30ce9571abf42334', 1, 1, 1, 8, 'main', false, true, false, '2026-03-02T01:40:00+00:00', 1772415600, '2026-03-02T01:40:40.5Z', '2026-11-30T01:07:50.110+00:00', 12, 4, '{"ok":4}', NULL, '{"checkout":{"base":null,"branch":"main","commit":{"author":"Ada <ada@example.org>","author_time":"2026-03-01T00:05:00+01:00","commit_time":"2026-03-01T00:05:00+01:00","parents":["0000000000000000000000000000000000000004"],"sha":"0000000000000000000000000000000000000005","subject":"Change 5"},"dirty":false,"head":null,"merge_base":null,"notes":[],"shallow":false,"tree":"tttttttttttttttttttttttttttttttttttttttt"},"ci":{"name":"github","url":"https://example.org/runs/1"},"command":"pytest --benchmark","device":{"memory_bytes":150000000000,"multiprocessors":132,"name":"NVIDIA H200","uuid":"GPU-11111111-2222-3333-4444-555555555555"},"notes":["first"]}');
INSERT INTO public.runs VALUES (8, 'run-uneven-0002', '8f0c44c971d303693bee984f2b2f708b7d3df266f07d1246854982457ea71167', 1, 1, 1, 4, 'main', false, true, false, '2026-03-02T01:41:00+00:00', 1772415660, '2026-03-02T01:41:40.5Z', '2026-11-30T01:07:50.119+00:00', 13, 4, '{"ok":4}', NULL, '{"checkout":{"base":null,"branch":"main","commit":{"author":"Ada <ada@example.org>","author_time":"2026-03-01T00:04:00+01:00","commit_time":"2026-03-01T00:04:00+01:00","parents":["0000000000000000000000000000000000000003"],"sha":"0000000000000000000000000000000000000004","subject":"Change 4"},"dirty":false,"head":null,"merge_base":null,"notes":[],"shallow":false,"tree":"tttttttttttttttttttttttttttttttttttttttt"},"ci":{"name":"github","url":"https://example.org/runs/1"},"command":"pytest --benchmark","device":{"memory_bytes":150000000000,"multiprocessors":132,"name":"NVIDIA H200","uuid":"GPU-11111111-2222-3333-4444-555555555555"},"notes":["first"]}');
INSERT INTO public.runs VALUES (9, 'run-odd-results', 'fc3ba6e443dedd2723bffc83c03bb47a8a1356902c502baa8465d6925a3d51c1', 1, 1, 1, 9, 'main', false, true, false, '2026-03-02T01:42:00+00:00', 1772415720, '2026-03-02T01:42:40.5Z', '2026-11-30T01:07:50.128+00:00', 14, 5, '{"error":1,"incorrect":1,"ok":3}', NULL, '{"checkout":{"base":null,"branch":"main","commit":{"author":"Ada <ada@example.org>","author_time":"2026-03-01T00:06:00+01:00","commit_time":"2026-03-01T00:06:00+01:00","parents":["0000000000000000000000000000000000000005"],"sha":"0000000000000000000000000000000000000006","subject":"Change 6"},"dirty":false,"head":null,"merge_base":null,"notes":[],"shallow":false,"tree":"tttttttttttttttttttttttttttttttttttttttt"},"ci":{"name":"github","url":"https://example.org/runs/1"},"command":"é \"x\", =1+1\r\n\t ‮☃ ''0''; -@","device":{"memory_bytes":150000000000,"multiprocessors":132,"name":"NVIDIA H200","uuid":"GPU-11111111-2222-3333-4444-555555555555"},"notes":["first"]}');
INSERT INTO public.runs VALUES (10, 'run-without-any', '0db9a2a799ffbb4e7e30ae93f327d3855957e726c4d3d160f959d379d5aded4d', 3, 3, 3, 10, 'é "x", =1+1
	 ‮☃ ''0''; -@', false, true, false, '2026-03-02T01:43:00+00:00', 1772415780, '2026-03-02T01:43:40.5Z', '2026-11-30T01:07:50.138+00:00', 15, 0, '{}', NULL, '{"checkout":{"base":"000000000000000000000000000000000000000a","branch":"é \"x\", =1+1\r\n\t ‮☃ ''0''; -@","commit":{"author":"Ada <ada@example.org>","author_time":"2026-03-01T00:12:00+01:00","commit_time":"2026-03-01T00:12:00+01:00","parents":["000000000000000000000000000000000000000a","000000000000000000000000000000000000000b"],"sha":"000000000000000000000000000000000000000c","subject":"Change 12"},"dirty":false,"head":"000000000000000000000000000000000000000b","merge_base":"0000000000000000000000000000000000000009","notes":[],"shallow":true,"tree":null},"ci":{"name":"github","url":"https://example.org/runs/1"},"command":"pytest --benchmark","device":{"memory_bytes":150000000000,"multiprocessors":132,"name":"NVIDIA H200","uuid":"GPU-11111111-2222-3333-4444-555555555555"},"notes":["first"]}');
INSERT INTO public.runs VALUES (11, 'run-in-the-demo', '7e507bcaf61eb42fb964294303886ae7765ba59233b667b278bda07cd5acf123', 1, 1, 1, NULL, 'main', true, true, true, '2026-03-02T01:44:00+00:00', 1772415840, '2026-03-02T01:44:40.5Z', '2026-11-30T01:07:50.142+00:00', 16, 2, '{"ok":2}', NULL, '{"checkout":{"base":null,"branch":"main","commit":null,"dirty":true,"head":null,"merge_base":null,"notes":[],"shallow":false,"tree":"tttttttttttttttttttttttttttttttttttttttt"},"ci":{},"command":"pytest --benchmark","device":{"memory_bytes":150000000000,"multiprocessors":132,"name":"NVIDIA H200","uuid":"GPU-11111111-2222-3333-4444-555555555555"},"notes":["first"]}');


--
-- Data for Name: samples; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.samples VALUES (9, NULL, '\x01abc693c080a181e429b8cf8d4cc17c12fc6f0c0e77fce9c78056e9c7c4106c3bf5530ab12e36b1b4d033c270b1b1296e179be0482fa8250c81d4636c889c7c8cf44c81e9c014350119014dc096624cf02619630304000713714526308814827d15c0120ab9f965a9290a49950a460aaa0a90600615960ae59979c09251a936b61600');
INSERT INTO public.samples VALUES (10, '\x010300000600000000f4010000000000e8030000000000008b2800', '\x01abc693c080a181e429b8cf8d4cc17c12fc6f0c0e77fce9c78056e9c7c4106c3bf5530ab12e36b1b4d033c270b1b1296e179be0482fa8250c81d4636c889c7c8cf44c81e9c014350119014dc096624cf02619630304000713714526308814827d15c0120ab9f965a9290a49950a460aaa0a90600615960ae59979c09251a936b61600');
INSERT INTO public.samples VALUES (11, '\x0102000003000000400d030000000000881300000000000018', '\x01abc693c080a181e429b8cf8d4cc17c12fc6f0c0e77fce9c78056e9c7c4106c3bf5530ab12e36b1b4d033c270b1b1296e179be0482fa8250c81d4636c889c7c8cf44c81e9c014350119014dc096624cf02619630304000713714526308814827d15c0120ab9f965a9290a49950a460aaa0a90600615960ae59979c09251a936b61600');
INSERT INTO public.samples VALUES (1, NULL, '\x01abc693c080a181e429b8cf8d4cc17c12fc6f0c0e77fce9c78056e9c7c4106c3bf5530ab12e36b1b4d033c270b1b1296e179be0482fa8250c81d4636c889c7c8cf44c81e9c014350119014dc096624cf02619630304000713714526308814827d15c0120ab9f965a9290a49950a460aaa0a90600615960ae59979c09251a936b61600');
INSERT INTO public.samples VALUES (2, NULL, '\x01abc693c080a181e429b8cf8d4cc17c12fc6f0c0e77fce9c78056e9c7c4106c3bf5530ab12e36b1b4d033c270b1b1296e179be0482fa8250c81d4636c889c7c8cf44c81e9c014350119014dc096624cf02619630304000713714526308814827d15c0120ab9f965a9290a49950a460aaa0a90600615960ae59979c09251a936b61600');
INSERT INTO public.samples VALUES (3, NULL, '\x01abc693c080a181e429b8cf8d4cc17c12fc6f0c0e77fce9c78056e9c7c4106c3bf5530ab12e36b1b4d033c270b1b1296e179be0482fa8250c81d4636c889c7c8cf44c81e9c014350119014dc096624cf02619630304000713714526308814827d15c0120ab9f965a9290a49950a460aaa0a90600615960ae59979c09251a936b61600');
INSERT INTO public.samples VALUES (4, NULL, '\x01abc693c080a181e429b8cf8d4cc17c12fc6f0c0e77fce9c78056e9c7c4106c3bf5530ab12e36b1b4d033c270b1b1296e179be0482fa8250c81d4636c889c7c8cf44c81e9c014350119014dc096624cf02619630304000713714526308814827d15c0120ab9f965a9290a49950a460aaa0a90600615960ae59979c09251a936b61600');
INSERT INTO public.samples VALUES (5, NULL, '\x01abc693c080a181e429b8cf8d4cc17c12fc6f0c0e77fce9c78056e9c7c4106c3bf5530ab12e36b1b4d033c270b1b1296e179be0482fa8250c81d4636c889c7c8cf44c81e9c014350119014dc096624cf02619630304000713714526308814827d15c0120ab9f965a9290a49950a460aaa0a90600615960ae59979c09251a936b61600');
INSERT INTO public.samples VALUES (6, NULL, '\x01abc693c080a181e429b8cf8d4cc17c12fc6f0c0e77fce9c78056e9c7c4106c3bf5530ab12e36b1b4d033c270b1b1296e179be0482fa8250c81d4636c889c7c8cf44c81e9c014350119014dc096624cf02619630304000713714526308814827d15c0120ab9f965a9290a49950a460aaa0a90600615960ae59979c09251a936b61600');
INSERT INTO public.samples VALUES (7, NULL, '\x01abc693c080a181e429b8cf8d4cc17c12fc6f0c0e77fce9c78056e9c7c4106c3bf5530ab12e36b1b4d033c270b1b1296e179be0482fa8250c81d4636c889c7c8cf44c81e9c014350119014dc096624cf02619630304000713714526308814827d15c0120ab9f965a9290a49950a460aaa0a90600615960ae59979c09251a936b61600');
INSERT INTO public.samples VALUES (8, NULL, '\x01abc693c080a181e429b8cf8d4cc17c12fc6f0c0e77fce9c78056e9c7c4106c3bf5530ab12e36b1b4d033c270b1b1296e179be0482fa8250c81d4636c889c7c8cf44c81e9c014350119014dc096624cf02619630304000713714526308814827d15c0120ab9f965a9290a49950a460aaa0a90600615960ae59979c09251a936b61600');
INSERT INTO public.samples VALUES (12, '\x010300000600000000f4010000000000e8030000000000008b2800', '\x01abc693c080a181e429b8cf8d4cc17c12fc6f0c0e77fce9c78056e9c7c4106c3bf5530ab12e36b1b4d033c270b1b1296e179be0482fa8250c81d4636c889c7c8cf44c81e9c014350119014dc096624cf02619630304000713714526308814827d15c0120ab9f965a9290a49950a460aaa0a90600615960ae59979c09251a936b61600');
INSERT INTO public.samples VALUES (13, '\x010300000600000000f4010000000000e8030000000000008b2800', '\x01abc693c080a181e429b8cf8d4cc17c12fc6f0c0e77fce9c78056e9c7c4106c3bf5530ab12e36b1b4d033c270b1b1296e179be0482fa8250c81d4636c889c7c8cf44c81e9c014350119014dc096624cf02619630304000713714526308814827d15c0120ab9f965a9290a49950a460aaa0a90600615960ae59979c09251a936b61600');
INSERT INTO public.samples VALUES (14, '\x010300000600000000f4010000000000e8030000000000008b2800', '\x01abc693c080a181e429b8cf8d4cc17c12fc6f0c0e77fce9c78056e9c7c4106c3bf5530ab12e36b1b4d033c270b1b1296e179be0482fa8250c81d4636c889c7c8cf44c81e9c014350119014dc096624cf02619630304000713714526308814827d15c0120ab9f965a9290a49950a460aaa0a90600615960ae59979c09251a936b61600');
INSERT INTO public.samples VALUES (15, '\x010300000600000000f4010000000000e8030000000000008b2800', '\x01abc693c080a181e429b8cf8d4cc17c12fc6f0c0e77fce9c78056e9c7c4106c3bf5530ab12e36b1b4d033c270b1b1296e179be0482fa8250c81d4636c889c7c8cf44c81e9c014350119014dc096624cf02619630304000713714526308814827d15c0120ab9f965a9290a49950a460aaa0a90600615960ae59979c09251a936b61600');
INSERT INTO public.samples VALUES (16, '\x010300000600000000f4010000000000e8030000000000008b2800', '\x01abc693c080a181e429b8cf8d4cc17c12fc6f0c0e77fce9c78056e9c7c4106c3bf5530ab12e36b1b4d033c270b1b1296e179be0482fa8250c81d4636c889c7c8cf44c81e9c014350119014dc096624cf02619630304000713714526308814827d15c0120ab9f965a9290a49950a460aaa0a90600615960ae59979c09251a936b61600');
INSERT INTO public.samples VALUES (17, '\x010300000600000000f4010000000000e8030000000000008b2800', '\x01abc693c080a181e429b8cf8d4cc17c12fc6f0c0e77fce9c78056e9c7c4106c3bf5530ab12e36b1b4d033c270b1b1296e179be0482fa8250c81d4636c889c7c8cf44c81e9c014350119014dc096624cf02619630304000713714526308814827d15c0120ab9f965a9290a49950a460aaa0a90600615960ae59979c09251a936b61600');
INSERT INTO public.samples VALUES (18, '\x010300000600000000f4010000000000e8030000000000008b2800', '\x01abc693c080a181e429b8cf8d4cc17c12fc6f0c0e77fce9c78056e9c7c4106c3bf5530ab12e36b1b4d033c270b1b1296e179be0482fa8250c81d4636c889c7c8cf44c81e9c014350119014dc096624cf02619630304000713714526308814827d15c0120ab9f965a9290a49950a460aaa0a90600615960ae59979c09251a936b61600');
INSERT INTO public.samples VALUES (19, '\x010300000600000000f4010000000000e8030000000000008b2800', '\x01abc693c080a181e429b8cf8d4cc17c12fc6f0c0e77fce9c78056e9c7c4106c3bf5530ab12e36b1b4d033c270b1b1296e179be0482fa8250c81d4636c889c7c8cf44c81e9c014350119014dc096624cf02619630304000713714526308814827d15c0120ab9f965a9290a49950a460aaa0a90600615960ae59979c09251a936b61600');
INSERT INTO public.samples VALUES (20, '\x010300000600000000f4010000000000e8030000000000008b2800', '\x01abc693c080a181e429b8cf8d4cc17c12fc6f0c0e77fce9c78056e9c7c4106c3bf5530ab12e36b1b4d033c270b1b1296e179be0482fa8250c81d4636c889c7c8cf44c81e9c014350119014dc096624cf02619630304000713714526308814827d15c0120ab9f965a9290a49950a460aaa0a90600615960ae59979c09251a936b61600');
INSERT INTO public.samples VALUES (21, NULL, '\x01abc693c080a181e429b8cf8d4cc17c12fc6f0c0e77fce9c78056e9c7c4106c3bf5530ab12e36b1b4d033c270b1b1296e179be0482fa8250c81d4636c889c7c8cf44c81e9c014350119014dc096624cf02619630304000713714526308814827d15c0120ab9f965a9290a49950a460aaa0a90600615960ae59979c09251a936b61600');
INSERT INTO public.samples VALUES (22, NULL, '\x01abc693c080a181e429b8cf8d4cc17c12fc6f0c0e77fce9c78056e9c7c4106c3bfe94624a305d10eb3e134b0b3d230cf7199be2769f098ed4815a9e10482bc686c889c548cf1418eba6a8c9c5086802b6f461823781181b20003820892b208141a410ecab009650c8cd2f4b4d5148aa5430525055800433a8685428cfcc0396834ab5b1b500');
INSERT INTO public.samples VALUES (23, '\x073f000006000000010000000000000001000000000000000000000000000000574b28979ac689efccccccccccccf48faaaaaaaaaaaafa47696d82bee012e68bac6e327886072402', '\x01abc693c080a181e429b8cf8d4cc17c12fc6f0c0e7772e20a3967262a59e595e6e4001322d0a379fa89c0ec934c5c9c1a1019a72696167a46183e3336c5ed33131c318b5a1680e219b3388278065a0619a6ea1a8363145b0c9ae08d426303040007067145584ca98141aaa5428c52458c928e82ada1b6614c514c5e4c494ca991819105984c05926606c60aea06ead60aba0e4ab53a70f32a508bc3dad85a00');
INSERT INTO public.samples VALUES (24, '\x010000000100000001000000000000000100000000000000', '\x01abc693c080a181e429b8cf8d4cc17c12fc6f0c0e77fce9c78056e9c7c4106c3bf5530ab12e36b1b4d033c270b1b1296e179be0482fa8250c81d4636c889c7c8cf44c81e9c014350119014dc096624cf02619630304000713714526308814827d15c0120ab9f965a9290a49950a460aaa0a90600615960ae59979c09251a936b61600');
INSERT INTO public.samples VALUES (25, '\x010300000600000000f4010000000000e8030000000000008b2800', '\x01abc693c080a181e429b8cf8d4cc17c12fc6f0c0e77fce9c78056e9c7c4106c3bf5530ab12e36b1b4d033c270b1b1296e179be0482fa8250c81d4636c889c7c8cf44c81e9c014350119014dc096624cf02619630304000713714526308814827d15c0120ab9f965a9290a49950a460aaa0a90600615960ae59979c09251a936b61600');
INSERT INTO public.samples VALUES (26, '\x0102000003000000400d030000000000881300000000000018', '\x01abc693c080a181e429b8cf8d4cc17c12fc6f0c0e77fce9c78056e9c7c4106c3bf5530ab12e36b1b4d033c270b1b1296e179be0482fa8250c81d4636c889c7c8cf44c81e9c014350119014dc096624cf02619630304000713714526308814827d15c0120ab9f965a9290a49950a460aaa0a90600615960ae59979c09251a936b61600');


--
-- Data for Name: series; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.series VALUES (3, 1, 2, '506eb894c8827499', 1, 1772415480, 1772415480);
INSERT INTO public.series VALUES (4, 2, 2, '506eb894c8827499', 1, 1772415480, 1772415480);
INSERT INTO public.series VALUES (5, 3, 1, '6f52eaf643d4a174', 2, 1772415600, 1772415660);
INSERT INTO public.series VALUES (6, 4, 1, '6f52eaf643d4a174', 2, 1772415600, 1772415660);
INSERT INTO public.series VALUES (7, 5, 1, '6f52eaf643d4a174', 1, 1772415720, 1772415720);
INSERT INTO public.series VALUES (8, 6, 1, '6f52eaf643d4a174', 1, 1772415720, 1772415720);
INSERT INTO public.series VALUES (9, 7, 1, '6f52eaf643d4a174', 1, 1772415720, 1772415720);
INSERT INTO public.series VALUES (10, 8, 1, '6f52eaf643d4a174', 1, 1772415720, 1772415720);
INSERT INTO public.series VALUES (11, 9, 1, '6f52eaf643d4a174', 1, 1772415720, 1772415720);
INSERT INTO public.series VALUES (1, 1, 1, '6f52eaf643d4a174', 8, 1772409660, 1772415840);
INSERT INTO public.series VALUES (2, 2, 1, '6f52eaf643d4a174', 7, 1772409660, 1772415840);


--
-- Data for Name: triage; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.triage VALUES (1, '0000000000000000', 'NVIDIA H200', '0000000000000000000000000000000000000002', NULL, 'new', NULL, 'Ada', '', '2026-11-30T01:07:50.093+00:00', NULL);
INSERT INTO public.triage VALUES (2, '0000000000000000', 'NVIDIA H200', '0000000000000000000000000000000000000002', '0000000000000000000000000000000000000001', 'new', -0.25, 'é "x", =1+1
	 ‮☃ ''0''; -@', 'é "x", =1+1
	 ‮☃ ''0''; -@', '2026-11-30T01:07:50.146+00:00', NULL);
INSERT INTO public.triage VALUES (3, '0000000000000000', 'NVIDIA H200', '0000000000000000000000000000000000000002', '0000000000000000000000000000000000000001', 'acknowledged', -0.25, 'é "x", =1+1
	 ‮☃ ''0''; -@', 'é "x", =1+1
	 ‮☃ ''0''; -@', '2026-11-30T01:07:50.148+00:00', NULL);
INSERT INTO public.triage VALUES (4, '0000000000000000', 'NVIDIA H200', '0000000000000000000000000000000000000002', '0000000000000000000000000000000000000001', 'accepted', -0.25, 'é "x", =1+1
	 ‮☃ ''0''; -@', 'é "x", =1+1
	 ‮☃ ''0''; -@', '2026-11-30T01:07:50.149+00:00', NULL);
INSERT INTO public.triage VALUES (5, '0000000000000000', 'NVIDIA H200', '0000000000000000000000000000000000000002', '0000000000000000000000000000000000000001', 'reopened', -0.25, 'é "x", =1+1
	 ‮☃ ''0''; -@', 'é "x", =1+1
	 ‮☃ ''0''; -@', '2026-11-30T01:07:50.150+00:00', NULL);


--
-- Data for Name: waivers; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.waivers VALUES (1, 'relu/*', NULL, 'granted', 'Ada', 'é', '2026-11-30T01:07:50.095+00:00', '2027-01-01T00:00:00Z');
INSERT INTO public.waivers VALUES (2, 'add/*', 'NVIDIA H200', 'granted', 'Bob', '', '2026-11-30T01:07:50.096+00:00', '2028-01-01T00:00:00Z');
INSERT INTO public.waivers VALUES (3, 'add/*', NULL, 'revoked', 'Bob', 'é "x", =1+1
	 ‮☃ ''0''; -@', '2026-11-30T01:07:50.151+00:00', NULL);


--
-- Name: bandwatch_version bandwatch_version_pkc; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.bandwatch_version
    ADD CONSTRAINT bandwatch_version_pkc PRIMARY KEY (version_num);


--
-- Name: cases pk_cases; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.cases
    ADD CONSTRAINT pk_cases PRIMARY KEY (id);


--
-- Name: commit_parents pk_commit_parents; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.commit_parents
    ADD CONSTRAINT pk_commit_parents PRIMARY KEY (commit_id, "position");


--
-- Name: commits pk_commits; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.commits
    ADD CONSTRAINT pk_commits PRIMARY KEY (id);


--
-- Name: devices pk_devices; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.devices
    ADD CONSTRAINT pk_devices PRIMARY KEY (id);


--
-- Name: environments pk_environments; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.environments
    ADD CONSTRAINT pk_environments PRIMARY KEY (id);


--
-- Name: facts pk_facts; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.facts
    ADD CONSTRAINT pk_facts PRIMARY KEY (id);


--
-- Name: gpu_models pk_gpu_models; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.gpu_models
    ADD CONSTRAINT pk_gpu_models PRIMARY KEY (id);


--
-- Name: meta pk_meta; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.meta
    ADD CONSTRAINT pk_meta PRIMARY KEY (id);


--
-- Name: results pk_results; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.results
    ADD CONSTRAINT pk_results PRIMARY KEY (id);


--
-- Name: runs pk_runs; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.runs
    ADD CONSTRAINT pk_runs PRIMARY KEY (id);


--
-- Name: samples pk_samples; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.samples
    ADD CONSTRAINT pk_samples PRIMARY KEY (result_id);


--
-- Name: series pk_series; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.series
    ADD CONSTRAINT pk_series PRIMARY KEY (id);


--
-- Name: triage pk_triage; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.triage
    ADD CONSTRAINT pk_triage PRIMARY KEY (id);


--
-- Name: waivers pk_waivers; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.waivers
    ADD CONSTRAINT pk_waivers PRIMARY KEY (id);


--
-- Name: cases uq_cases_fingerprint; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.cases
    ADD CONSTRAINT uq_cases_fingerprint UNIQUE (fingerprint);


--
-- Name: commits uq_commits_sha; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.commits
    ADD CONSTRAINT uq_commits_sha UNIQUE (sha);


--
-- Name: devices uq_devices_gpu_model_id_uuid; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.devices
    ADD CONSTRAINT uq_devices_gpu_model_id_uuid UNIQUE (gpu_model_id, uuid);


--
-- Name: environments uq_environments_digest; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.environments
    ADD CONSTRAINT uq_environments_digest UNIQUE (digest);


--
-- Name: facts uq_facts_digest; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.facts
    ADD CONSTRAINT uq_facts_digest UNIQUE (digest);


--
-- Name: gpu_models uq_gpu_models_backend_name; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.gpu_models
    ADD CONSTRAINT uq_gpu_models_backend_name UNIQUE (backend, name);


--
-- Name: results uq_results_run_id_case_id; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.results
    ADD CONSTRAINT uq_results_run_id_case_id UNIQUE (run_id, case_id);


--
-- Name: runs uq_runs_run_id; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.runs
    ADD CONSTRAINT uq_runs_run_id UNIQUE (run_id);


--
-- Name: series uq_series_case_id_gpu_model_id_fingerprint; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.series
    ADD CONSTRAINT uq_series_case_id_gpu_model_id_fingerprint UNIQUE (case_id, gpu_model_id, fingerprint);


--
-- Name: ix_commit_parents_parent_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_commit_parents_parent_id ON public.commit_parents USING btree (parent_id);


--
-- Name: ix_environments_fingerprint; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_environments_fingerprint ON public.environments USING btree (fingerprint);


--
-- Name: ix_results_case_id_run_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_results_case_id_run_id ON public.results USING btree (case_id, run_id);


--
-- Name: ix_runs_commit_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_runs_commit_id ON public.runs USING btree (commit_id);


--
-- Name: ix_runs_gpu_model_id_started; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_runs_gpu_model_id_started ON public.runs USING btree (gpu_model_id, started);


--
-- Name: ix_runs_started; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_runs_started ON public.runs USING btree (started);


--
-- Name: ix_series_gpu_model_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_series_gpu_model_id ON public.series USING btree (gpu_model_id);


--
-- Name: ix_triage_case_fingerprint_gpu_model_commit_sha; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_triage_case_fingerprint_gpu_model_commit_sha ON public.triage USING btree (case_fingerprint, gpu_model, commit_sha);


--
-- Name: triage triage_no_delete; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER triage_no_delete BEFORE DELETE ON public.triage FOR EACH ROW EXECUTE FUNCTION public.bandwatch_append_only();


--
-- Name: triage triage_no_update; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER triage_no_update BEFORE UPDATE ON public.triage FOR EACH ROW EXECUTE FUNCTION public.bandwatch_append_only();


--
-- Name: waivers waivers_no_delete; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER waivers_no_delete BEFORE DELETE ON public.waivers FOR EACH ROW EXECUTE FUNCTION public.bandwatch_append_only();


--
-- Name: waivers waivers_no_update; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER waivers_no_update BEFORE UPDATE ON public.waivers FOR EACH ROW EXECUTE FUNCTION public.bandwatch_append_only();


--
-- Name: commit_parents fk_commit_parents_commit_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.commit_parents
    ADD CONSTRAINT fk_commit_parents_commit_id FOREIGN KEY (commit_id) REFERENCES public.commits(id);


--
-- Name: commit_parents fk_commit_parents_parent_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.commit_parents
    ADD CONSTRAINT fk_commit_parents_parent_id FOREIGN KEY (parent_id) REFERENCES public.commits(id);


--
-- Name: devices fk_devices_gpu_model_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.devices
    ADD CONSTRAINT fk_devices_gpu_model_id FOREIGN KEY (gpu_model_id) REFERENCES public.gpu_models(id);


--
-- Name: environments fk_environments_gpu_model_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.environments
    ADD CONSTRAINT fk_environments_gpu_model_id FOREIGN KEY (gpu_model_id) REFERENCES public.gpu_models(id);


--
-- Name: results fk_results_case_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.results
    ADD CONSTRAINT fk_results_case_id FOREIGN KEY (case_id) REFERENCES public.cases(id);


--
-- Name: results fk_results_facts_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.results
    ADD CONSTRAINT fk_results_facts_id FOREIGN KEY (facts_id) REFERENCES public.facts(id);


--
-- Name: results fk_results_run_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.results
    ADD CONSTRAINT fk_results_run_id FOREIGN KEY (run_id) REFERENCES public.runs(id);


--
-- Name: runs fk_runs_commit_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.runs
    ADD CONSTRAINT fk_runs_commit_id FOREIGN KEY (commit_id) REFERENCES public.commits(id);


--
-- Name: runs fk_runs_device_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.runs
    ADD CONSTRAINT fk_runs_device_id FOREIGN KEY (device_id) REFERENCES public.devices(id);


--
-- Name: runs fk_runs_environment_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.runs
    ADD CONSTRAINT fk_runs_environment_id FOREIGN KEY (environment_id) REFERENCES public.environments(id);


--
-- Name: runs fk_runs_gpu_model_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.runs
    ADD CONSTRAINT fk_runs_gpu_model_id FOREIGN KEY (gpu_model_id) REFERENCES public.gpu_models(id);


--
-- Name: samples fk_samples_result_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.samples
    ADD CONSTRAINT fk_samples_result_id FOREIGN KEY (result_id) REFERENCES public.results(id);


--
-- Name: series fk_series_case_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.series
    ADD CONSTRAINT fk_series_case_id FOREIGN KEY (case_id) REFERENCES public.cases(id);


--
-- Name: series fk_series_gpu_model_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.series
    ADD CONSTRAINT fk_series_gpu_model_id FOREIGN KEY (gpu_model_id) REFERENCES public.gpu_models(id);


--
-- PostgreSQL database dump complete
--


