//! `cargo xtask mujoco-layouts`: the layouts of MuJoCo's structures, from the headers of its own wheels.
//!
//! For each version: pip fetches its wheel, a C compiler compiles a small program against the wheel's `include` folder, and the
//! program prints the entry of that version. Statements in that program refuse a version in which something that the code relies
//! on has another type or number.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::{capture, command, python, root, run};

/// The versions in the table, the recommended one first: the newest release of each minor version from 3.3 on.
const VERSIONS: &[&str] = &[
    "3.17.0", "4.0.1", "4.0.0", "3.16.0", "3.15.0", "3.14.0", "3.13.0", "3.12.0", "3.11.0", "3.10.0",
    "3.9.0", "3.8.1", "3.7.0", "3.6.0", "3.5.0", "3.4.0", "3.3.7",
];

/// The file that is written.
const TABLE: &str = "crates/foveate-mujoco/src/versions/layouts.rs";

/// What each structure of `versions.rs` holds: names of fields with their value in C, `offset(TYPE, FIELD)`, `size(TYPE)` or
/// `optional(TYPE, FIELD)`, which is there from 3.5 on; or another structure.
const STRUCTURES: &[(&str, &[(&str, &str)])] = &[
    (
        "ModelLayout",
        &[
            ("count_size", "sizeof(((mjModel*)0)->nq)"),
            ("size_size", "sizeof(mj_sizeModel(m))"),
            ("nq", "offset(mjModel, nq)"),
            ("nv", "offset(mjModel, nv)"),
            ("nu", "offset(mjModel, nu)"),
            ("ncam", "offset(mjModel, ncam)"),
            ("nsensor", "offset(mjModel, nsensor)"),
            ("nsensordata", "offset(mjModel, nsensordata)"),
            ("nkey", "offset(mjModel, nkey)"),
            ("nmat", "offset(mjModel, nmat)"),
            ("mat_texid", "offset(mjModel, mat_texid)"),
            ("mat_texuniform", "offset(mjModel, mat_texuniform)"),
            ("mat_texrepeat", "offset(mjModel, mat_texrepeat)"),
            ("texture_roles", "mjNTEXROLE"),
            ("texture_role", "mjTEXROLE_RGB"),
            ("shadow_clip", "offset(mjModel, vis.map.shadowclip)"),
            ("shadow_scale", "offset(mjModel, vis.map.shadowscale)"),
            ("extent", "offset(mjModel, stat.extent)"),
            ("time_step", "offset(mjModel, opt.timestep)"),
            ("integrator", "offset(mjModel, opt.integrator)"),
            ("control_limited", "offset(mjModel, actuator_ctrllimited)"),
            ("control_range", "offset(mjModel, actuator_ctrlrange)"),
            ("sensor_dim", "offset(mjModel, sensor_dim)"),
            ("sensor_adr", "offset(mjModel, sensor_adr)"),
            ("sensor_delay", "optional(mjModel, sensor_delay)"),
            ("sensor_data", "offset(mjData, sensordata)"),
        ],
    ),
    (
        "SceneLayout",
        &[
            ("scene_size", "sizeof(mjvScene)"),
            ("maxgeom", "offset(mjvScene, maxgeom)"),
            ("ngeom", "offset(mjvScene, ngeom)"),
            ("geoms", "offset(mjvScene, geoms)"),
            ("nflex", "offset(mjvScene, nflex)"),
            ("nskin", "offset(mjvScene, nskin)"),
            ("nlight", "offset(mjvScene, nlight)"),
            ("lights", "offset(mjvScene, lights)"),
            ("cameras", "offset(mjvScene, camera)"),
            ("geom_size", "sizeof(mjvGeom)"),
            ("geom", "GeomLayout"),
            ("light_size", "sizeof(mjvLight)"),
            ("light", "LightLayout"),
            ("gl_camera_size", "sizeof(mjvGLCamera)"),
            ("gl_camera", "GlCameraLayout"),
            ("camera_size", "sizeof(mjvCamera)"),
            ("camera_type", "offset(mjvCamera, type)"),
            ("camera_fixed", "offset(mjvCamera, fixedcamid)"),
            ("option_size", "sizeof(mjvOption)"),
            ("option_flags", "offset(mjvOption, flags)"),
            ("option_flag_count", "mjNVISFLAG"),
            ("contact_points", "mjVIS_CONTACTPOINT"),
            ("perturb_size", "sizeof(mjvPerturb)"),
        ],
    ),
    (
        "GeomLayout",
        &[
            ("kind", "offset(mjvGeom, type)"),
            ("objtype", "offset(mjvGeom, objtype)"),
            ("objid", "offset(mjvGeom, objid)"),
            ("matid", "offset(mjvGeom, matid)"),
            ("size", "offset(mjvGeom, size)"),
            ("pos", "offset(mjvGeom, pos)"),
            ("mat", "offset(mjvGeom, mat)"),
            ("rgba", "offset(mjvGeom, rgba)"),
            ("emission", "offset(mjvGeom, emission)"),
            ("transparent", "offset(mjvGeom, transparent)"),
        ],
    ),
    (
        "LightLayout",
        &[
            ("pos", "offset(mjvLight, pos)"),
            ("dir", "offset(mjvLight, dir)"),
            ("kind", "offset(mjvLight, type)"),
            ("attenuation", "offset(mjvLight, attenuation)"),
            ("cutoff", "offset(mjvLight, cutoff)"),
            ("exponent", "offset(mjvLight, exponent)"),
            ("ambient", "offset(mjvLight, ambient)"),
            ("diffuse", "offset(mjvLight, diffuse)"),
            ("specular", "offset(mjvLight, specular)"),
            ("headlight", "offset(mjvLight, headlight)"),
            ("castshadow", "offset(mjvLight, castshadow)"),
        ],
    ),
    (
        "GlCameraLayout",
        &[
            ("pos", "offset(mjvGLCamera, pos)"),
            ("forward", "offset(mjvGLCamera, forward)"),
            ("up", "offset(mjvGLCamera, up)"),
            ("frustum_top", "offset(mjvGLCamera, frustum_top)"),
            ("frustum_near", "offset(mjvGLCamera, frustum_near)"),
            ("orthographic", "offset(mjvGLCamera, orthographic)"),
        ],
    ),
    (
        "Objects",
        &[
            ("body", "mjOBJ_BODY"),
            ("joint", "mjOBJ_JOINT"),
            ("geom", "mjOBJ_GEOM"),
            ("site", "mjOBJ_SITE"),
            ("camera", "mjOBJ_CAMERA"),
            ("sensor", "mjOBJ_SENSOR"),
            ("key", "mjOBJ_KEY"),
        ],
    ),
    (
        "States",
        &[
            ("time", "mjSTATE_TIME"),
            ("positions", "mjSTATE_QPOS"),
            ("velocities", "mjSTATE_QVEL"),
            ("controls", "mjSTATE_CTRL"),
            ("mocap_positions", "mjSTATE_MOCAP_POS"),
        ],
    ),
];

/// What the code relies on in every version: types of fields, numbers of constants, and the types of functions.
const RELIED_ON: &str = r"
#define SAME(type, expression) _Static_assert(_Generic((expression), type: 1, default: 0), #expression)
#define EQUAL(a, b) _Static_assert((a) == (b), #a)
static mjModel* m; static mjData* d; static mjvScene* s; static mjvGeom* g; static mjvLight* l; static mjvGLCamera* c;
static void types(void) {
  EQUAL(sizeof(void*), 8); EQUAL(sizeof(int), 4); SAME(mjtNum, 0.0); EQUAL(sizeof(mjtByte), 1);
  EQUAL(sizeof(m->nq), sizeof(m->nv)); EQUAL(sizeof(m->nq), sizeof(m->nu)); EQUAL(sizeof(m->nq), sizeof(m->ncam));
  EQUAL(sizeof(m->nq), sizeof(m->nsensor)); EQUAL(sizeof(m->nq), sizeof(m->nsensordata));
  EQUAL(sizeof(m->nq), sizeof(m->nkey));
  SAME(float, m->vis.map.shadowclip); SAME(float, m->vis.map.shadowscale); SAME(double, m->stat.extent);
  SAME(double, m->opt.timestep); SAME(int, m->opt.integrator); SAME(int, m->opt.iterations);
  SAME(int, m->opt.ls_iterations); SAME(int, m->opt.noslip_iterations); SAME(int, m->opt.ccd_iterations);
  SAME(int, m->opt.sdf_initpoints); SAME(int, m->opt.sdf_iterations);
#define AFTER(field, places) EQUAL(offsetof(mjModel, opt.field), offsetof(mjModel, opt.integrator) + 4 * places)
  AFTER(iterations, 4); AFTER(ls_iterations, 5); AFTER(noslip_iterations, 6); AFTER(ccd_iterations, 7);
  AFTER(sdf_initpoints, 11); AFTER(sdf_iterations, 12);
  EQUAL(sizeof(*m->actuator_ctrllimited), 1); SAME(double*, m->actuator_ctrlrange);
  EQUAL(sizeof(m->nq), sizeof(m->nmat)); SAME(int*, m->mat_texid); EQUAL(sizeof(*m->mat_texuniform), 1);
  SAME(float*, m->mat_texrepeat);
  SAME(int*, m->sensor_dim); SAME(int*, m->sensor_adr); SAME(double*, d->sensordata);
  SAME(int, s->maxgeom); SAME(int, s->ngeom); SAME(mjvGeom*, s->geoms); SAME(int, s->nflex); SAME(int, s->nskin);
  SAME(int, s->nlight); EQUAL(sizeof(s->lights), 100 * sizeof(mjvLight)); EQUAL(sizeof(s->camera), 2 * sizeof(mjvGLCamera));
  SAME(int, g->type); SAME(int, g->objtype); SAME(int, g->objid); SAME(int, g->matid);
  SAME(float*, g->size + 0); SAME(float*, g->pos + 0); SAME(float*, g->mat + 0);
  SAME(float*, g->rgba + 0); SAME(float, g->emission); EQUAL(sizeof(g->transparent), 1);
  EQUAL(sizeof(g->size), 12); EQUAL(sizeof(g->mat), 36); EQUAL(sizeof(g->rgba), 16);
  EQUAL(offsetof(mjvGeom, reflectance), offsetof(mjvGeom, emission) + 12);
  SAME(float*, l->pos + 0); SAME(float*, l->dir + 0); EQUAL(sizeof(l->type), 4); SAME(float*, l->attenuation + 0);
  SAME(float, l->cutoff); SAME(float, l->exponent); SAME(float*, l->ambient + 0); SAME(float*, l->diffuse + 0);
  SAME(float*, l->specular + 0); EQUAL(sizeof(l->headlight), 1); EQUAL(sizeof(l->castshadow), 1);
  SAME(float*, c->pos + 0); SAME(float*, c->forward + 0); SAME(float*, c->up + 0); SAME(float, c->frustum_top);
  SAME(float, c->frustum_near); EQUAL(offsetof(mjvGLCamera, frustum_far), offsetof(mjvGLCamera, frustum_near) + 4);
  EQUAL(mjGEOM_PLANE, 0); EQUAL(mjGEOM_SPHERE, 2); EQUAL(mjGEOM_CAPSULE, 3); EQUAL(mjGEOM_ELLIPSOID, 4);
  EQUAL(mjGEOM_CYLINDER, 5); EQUAL(mjGEOM_BOX, 6); EQUAL(mjLIGHT_SPOT, 0); EQUAL(mjLIGHT_DIRECTIONAL, 1);
  EQUAL(mjLIGHT_POINT, 2); EQUAL(mjINT_RK4, 1); EQUAL(mjCAMERA_FIXED, 2); EQUAL(mjCAT_DECOR, 4); EQUAL(mjCAT_ALL, 7);
  EQUAL(sizeof(((mjvOption*)0)->flags), mjNVISFLAG); EQUAL(sizeof(((mjvCamera*)0)->fixedcamid), 4);
  SAME(mjSpec* (*)(const char*, const mjVFS*, char*, int), mj_parseXMLString);
  SAME(mjSpec* (*)(const char*, const mjVFS*, char*, int), mj_parseXML);
  SAME(mjModel* (*)(mjSpec*, const mjVFS*), mj_compile); SAME(const char* (*)(mjSpec*), mjs_getError);
  SAME(void (*)(mjSpec*), mj_deleteSpec); SAME(void (*)(mjModel*), mj_deleteModel);
  SAME(mjModel* (*)(const char*, const mjVFS*), mj_loadModel);
  SAME(int (*)(const mjModel*, int, const char*), mj_name2id); SAME(mjData* (*)(const mjModel*), mj_makeData);
  SAME(mjData* (*)(mjData*, const mjModel*, const mjData*), mj_copyData); SAME(void (*)(mjData*), mj_deleteData);
  SAME(void (*)(const mjModel*, mjData*), mj_resetData); SAME(void (*)(const mjModel*, mjData*, int), mj_resetDataKeyframe);
  SAME(void (*)(const mjModel*, mjData*), mj_forward); SAME(void (*)(const mjModel*, mjData*), mj_step);
  SAME(void (*)(const mjModel*, mjData*), mj_step1); SAME(void (*)(const mjModel*, mjData*), mj_step2);
  SAME(void (*)(const mjModel*, mjtNum*), mj_normalizeQuat);
  SAME(void (*)(mjvOption*), mjv_defaultOption); SAME(void (*)(mjvCamera*), mjv_defaultCamera);
  SAME(void (*)(mjvScene*), mjv_defaultScene); SAME(void (*)(const mjModel*, mjvScene*, int), mjv_makeScene);
  SAME(void (*)(mjvScene*), mjv_freeScene);
  SAME(void (*)(const mjModel*, mjData*, const mjvOption*, const mjvPerturb*, mjvCamera*, int, mjvScene*), mjv_updateScene);
#if mjVERSION_HEADER >= 3005000
  SAME(double*, m->sensor_delay);
#endif
#if mjVERSION_HEADER >= 3010000
  SAME(int, ((mjLogMessage*)0)->level); EQUAL(offsetof(mjLogMessage, subject), 8);
  EQUAL(sizeof(((mjLogMessage*)0)->subject), 1024); EQUAL(mjLOG_WARNING, 2); EQUAL(mjLOG_ERROR, 3);
#endif
}
";

const HEAD: &str = "\
//! Written by `cargo xtask mujoco-layouts` from the headers of MuJoCo's wheels; [`Version`] says what the numbers are.

use super::{GeomLayout, GlCameraLayout, LightLayout, ModelLayout, Objects, SceneLayout, States, Version};

/// All supported versions, the recommended one first, then the newest.
pub(crate) static VERSIONS: &[Version] = &[
";

/// Writes the table.
pub(crate) fn layouts() -> Result<()> {
    let folder = root().join("target/mujoco-layouts");
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let source = folder.join("layouts.c");
    fs::write(&source, program()).with_context(|| format!("writing {}", source.display()))?;
    let mut table = HEAD.to_owned();
    for version in VERSIONS {
        table += &entry(&folder, version).with_context(|| format!("MuJoCo {version}"))?;
    }
    table += "];\n";
    fs::write(root().join(TABLE), table).with_context(|| format!("writing {TABLE}"))?;
    eprintln!("wrote {TABLE} with {} versions", VERSIONS.len());
    Ok(())
}

/// The entry of one version.
fn entry(folder: &Path, version: &str) -> Result<String> {
    // From 4.0 on, the headers and the library are in a package of their own.
    let package = if version.starts_with("3.") { "mujoco" } else { "mujoco-core" };
    let place = folder.join(version);
    let include = place.join("mujoco/include");
    if !include.is_dir() {
        let python = python::base_interpreter()?;
        let wheels = folder.join(format!("wheel-{version}"));
        let mut pip = command(&python);
        pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]);
        pip.args(["--only-binary", ":all:", "--dest"]).arg(&wheels).arg(format!("{package}=={version}"));
        run("pip download", &mut pip)?;
        let wheel = fs::read_dir(&wheels)?.next().context("pip downloaded nothing")??.path();
        run("unpacking", command(&python).args(["-m", "zipfile", "-e"]).arg(wheel).arg(&place))?;
        if !include.is_dir() {
            bail!("the wheel of {package} has no folder mujoco/include");
        }
    }
    let program = place.join("layouts");
    let mut compiler = command(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    compiler.args(["-std=c11", "-I"]).arg(&include).arg(folder.join("layouts.c")).arg("-o").arg(&program);
    // Only types are asked of functions, so nothing of the library is linked.
    run("the C compiler (CC)", &mut compiler)?;
    let printed = capture("the program", &mut command(&program))?;
    if !printed.contains(&format!("\"{version}\"")) {
        bail!("its headers are those of another version: {}", printed.lines().nth(1).unwrap_or_default());
    }
    Ok(printed)
}

/// The C program that prints an entry.
fn program() -> String {
    let mut body = String::new();
    for (kind, name) in
        [("ModelLayout", "model"), ("SceneLayout", "scene"), ("Objects", "objects"), ("States", "states")]
    {
        body += "  printf(\"        \");\n";
        print_structure(&mut body, kind, name);
        body += "  printf(\",\\n\");\n";
    }
    format!(
        r#"#include <stddef.h>
#include <stdio.h>
#include <mujoco/mujoco.h>
{RELIED_ON}
#define offset(type, field) offsetof(type, field)
#define print(name, value) printf("%s: %zu, ", name, (size_t)(value))
#if mjVERSION_HEADER >= 3005000
#define optional(name, type, field) printf("%s: Some(%zu), ", name, offsetof(type, field))
#else
#define optional(name, type, field) printf("%s: None, ", name)
#endif
int main(void) {{
  (void)types;
  int v = mjVERSION_HEADER, old = v < 1000;
  int part[3] = {{old ? v / 100 : v / 1000000, old ? v / 10 % 10 : v / 1000 % 1000, old ? v % 10 : v % 1000}};
  printf("    Version {{\n        number: %d,\n        name: \"%d.%d.%d\",\n", v, part[0], part[1], part[2]);
{body}  printf("    }},\n");
}}
"#
    )
}

/// The statements that print the structure `kind` as the value of the field `name`, on one line.
fn print_structure(body: &mut String, kind: &str, name: &str) {
    let (_, fields) = STRUCTURES.iter().find(|(of, _)| *of == kind).expect("a structure in the list");
    let _ = writeln!(body, "  printf(\"{name}: {kind} {{ \");");
    for (field, value) in *fields {
        let _ = match value.strip_prefix("optional(") {
            _ if STRUCTURES.iter().any(|(of, _)| of == value) => {
                print_structure(body, value, field);
                writeln!(body, "  printf(\", \");")
            }
            Some(rest) => writeln!(body, "  optional(\"{field}\", {rest};"),
            None => writeln!(body, "  print(\"{field}\", {value});"),
        };
    }
    let _ = writeln!(body, "  printf(\"}}\");");
}
